"""Error conditions of variables, macros and ephemeral views."""

from __future__ import annotations

from collections.abc import Sequence

from spark_jobs.errors import LocatedError, counted


class UnknownVariableError(LocatedError):
    """No setting defines the variable."""

    condition = "UNKNOWN_VARIABLE"
    name: str
    known: Sequence[str]
    misspelt = "name"
    primary = "there is no variable @{name}"
    hint = 'Set it under "variables" in tidemark.yml, or in a profile.'


class UnknownEphemeralError(LocatedError):
    """No file declares the ephemeral view."""

    condition = "UNKNOWN_EPHEMERAL_VIEW"
    name: str
    known: Sequence[str]
    misspelt = "name"
    primary = "there is no ephemeral view {name!r}"
    hint = "Write its SELECT into sql/ephemeral/{name}.sql."


class MacroError(LocatedError):
    """A file of sql/macros/ does not contain a macro."""

    condition = "MACRO"
    name: str
    problem: str
    primary = "this does not define macro {name!r}: {problem}"
    hint = "Write CREATE MACRO {name}(parameter, ...) AS, and one expression over the parameters."


class MacroArgumentsError(LocatedError):
    """A macro call has the wrong number of arguments."""

    condition = "MACRO_ARGUMENTS"
    name: str
    wanted: int
    given: int
    parameters: Sequence[str]
    primary = "macro {name!r} takes {arguments}, but got {given}"
    hint = "{remedy}"

    @property
    def arguments(self) -> str:
        return counted(self.wanted, "argument")

    @property
    def remedy(self) -> str:
        if not self.parameters:
            return f"Call it as {self.name}()."
        return f"Call it as {self.name}({', '.join(self.parameters)})."


class ReuseCycleError(LocatedError):
    """A macro or ephemeral view uses itself."""

    condition = "REUSE_CYCLE"
    path: Sequence[str]
    primary = "{chain} uses itself"
    hint = "Break the cycle: replace one of the uses by its text."

    @property
    def chain(self) -> str:
        return " -> ".join(self.path)


class ExpansionTooLargeError(LocatedError):
    """A statement is too large after expansion."""

    condition = "EXPANSION_TOO_LARGE"
    largest: int
    primary = "the statement is too long after macros and ephemeral views are expanded"
    hint = (
        "It may have at most {largest} characters. Publish a part of it as a gold view, or use "
        "fewer nested macros."
    )
