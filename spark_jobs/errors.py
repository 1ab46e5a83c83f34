"""Errors that a user meets: a condition name, what and where, and what to do.

A subclass per condition; its parameters are attributes, so that tests and callers never read the
text. ``primary`` is lower case without a full stop; ``detail`` and ``hint`` are sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import ClassVar


@dataclass(frozen=True)
class Location:
    """A place in a file that a user wrote; lines and columns count from 1."""

    file: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part)


class LakehouseError(Exception):
    """The base of every error that is meant to be read by a user.

    Attributes:
        condition: a stable name in upper case, for programs and runbooks.
        primary: one line, what is wrong with what.
        detail: sentences that explain, or None.
        hint: sentences that say what to do, or None.
        location: the place in a file, or None.
    """

    condition: ClassVar[str] = "LAKEHOUSE_ERROR"

    def __init__(
        self,
        primary: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        location: Location | None = None,
    ) -> None:
        self.primary = primary
        self.detail = detail
        self.hint = hint
        self.location = location
        super().__init__(self.render())

    def render(self) -> str:
        """The message as a terminal shows it: one line, then indented detail and hint."""
        place = f"{self.location}: " if self.location else ""
        lines = [f"{place}{self.primary} [{self.condition}]"]
        if self.detail:
            lines.append(f"  Detail: {self.detail}")
        if self.hint:
            lines.append(f"  Hint: {self.hint}")
        return "\n".join(lines)

    def as_dict(self) -> dict[str, str | int | None]:
        """The error for programs: condition, primary, detail, hint, file, line, column."""
        place = self.location or Location("")
        return {
            "condition": self.condition,
            "primary": self.primary,
            "detail": self.detail,
            "hint": self.hint,
            "file": place.file or None,
            "line": place.line,
            "column": place.column,
        }


class RefusedError(LakehouseError):
    """The base of what only an operator can decide; trying again does not help."""

    condition = "REFUSED"


class ProblemsError(LakehouseError):
    """Several errors found in one pass, so that a user can mend them all at once."""

    condition = "PROBLEMS"

    def __init__(self, problems: Sequence[LakehouseError]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        super().__init__(f"{count} problem{'s' if count != 1 else ''} found")

    def render(self) -> str:
        return "\n".join([*(problem.render() for problem in self.problems), self.primary])


class InvalidNameError(LakehouseError):
    """A name that is not ``layer.name`` with an allowed identifier."""

    condition = "INVALID_NAME"

    def __init__(self, name: str, *, location: Location | None = None) -> None:
        self.name = name
        super().__init__(
            f"{name!r} is not the name of a table",
            hint="Write bronze.NAME, silver.NAME or gold.NAME; NAME is up to 63 lower-case "
            "letters, digits and underscores and starts with a letter.",
            location=location,
        )


class SettingError(LakehouseError):
    """A setting that is unknown or has a value that does not fit."""

    condition = "SETTING"

    def __init__(self, key: str, problem: str, *, location: Location | None = None) -> None:
        self.key = key
        self.problem = problem
        super().__init__(
            f"setting {key!r}: {problem}",
            hint="Mend tidemark.yml or the environment variable TIDEMARK_"
            + key.upper().replace(".", "__")
            + ".",
            location=location,
        )


class SettingsFileError(LakehouseError):
    """A settings file that does not hold keys and values."""

    condition = "SETTINGS_FILE"

    def __init__(self, problem: str, *, location: Location) -> None:
        super().__init__(
            f"the settings cannot be read: {problem}",
            hint="Write keys and values as YAML, one 'key: value' a line.",
            location=location,
        )


def did_you_mean(word: str, known: Sequence[str]) -> str | None:
    """A sentence that suggests the nearest known word, or None.

    >>> did_you_mean("grian", ["grain", "owner"])
    'Did you mean "grain"?'
    """
    close = get_close_matches(word, known, n=1, cutoff=0.6)
    return f'Did you mean "{close[0]}"?' if close else None
