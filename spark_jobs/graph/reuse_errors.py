"""Conditions of variables, macros and ephemeral views."""

from __future__ import annotations

from collections.abc import Sequence

from spark_jobs.errors import LocatedError


class UnknownVariableError(LocatedError):
    """A variable that no setting gives."""

    condition = "UNKNOWN_VARIABLE"
    name: str
    known: Sequence[str]
    misspelt = "name"
    primary = "there is no variable @{name}"
    hint = 'Set it under "variables" in tidemark.yml, or in a profile.'


class UnknownEphemeralError(LocatedError):
    """An ephemeral view that no file declares."""

    condition = "UNKNOWN_EPHEMERAL_VIEW"
    name: str
    known: Sequence[str]
    misspelt = "name"
    primary = "there is no ephemeral view {name!r}"
    hint = "Write its SELECT into sql/ephemeral/{name}.sql."


class MacroError(LocatedError):
    """A file of sql/macros/ that holds no macro."""

    condition = "MACRO"
    name: str
    problem: str
    primary = "this does not define macro {name!r}: {problem}"
    hint = "Write CREATE MACRO {name}(parameter, ...) AS, and one expression over the parameters."


class MacroArgumentsError(LocatedError):
    """A call of a macro with too many arguments, or too few."""

    condition = "MACRO_ARGUMENTS"
    name: str
    wanted: int
    given: int
    parameters: Sequence[str]
    primary = "macro {name!r} takes {wanted} arguments, but got {given}"
    hint = "Its parameters are: {parameters}."


class ReuseCycleError(LocatedError):
    """A macro or an ephemeral view that uses itself."""

    condition = "REUSE_CYCLE"
    path: Sequence[str]
    primary = "{way} uses itself"
    hint = "Break the cycle: replace one of the uses by its text."

    @property
    def way(self) -> str:
        return " -> ".join(self.path)


class ExpansionTooLargeError(LocatedError):
    """A statement that becomes huge with all that it uses."""

    condition = "EXPANSION_TOO_LARGE"
    largest: int
    primary = "the statement is too long after macros and ephemeral views are expanded"
    hint = (
        "It may have at most {largest} characters. Publish a part of it as a gold view, or use "
        "fewer nested macros."
    )
