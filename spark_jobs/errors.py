"""Errors that a user meets: a condition name, what and where, and what to do.

A subclass per condition. It declares its parameters, which are attributes, so that tests and
callers never read the text; and the texts, which name the attributes in braces. ``primary`` is
lower case without a full stop; ``detail`` and ``hint`` are sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import PurePath
from typing import Any, ClassVar, Final, dataclass_transform

# The least similarity of a suggested word, from 0 to 1.
_NEAR: Final = 0.6


@dataclass(frozen=True)
class Location:
    """A place in a file that a user wrote; lines and columns count from 1."""

    file: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part)


@dataclass_transform(eq_default=False, field_specifiers=(field,))
class LakehouseError(Exception):
    """The base of every error that is meant to be read by a user.

    A subclass is a dataclass: its annotated names are the parameters of its constructor. Its texts
    are templates of ``str.format``, filled with its attributes and properties. A sequence is
    written with commas, or with what its format says: ``{path: -> }``. An empty detail or hint is
    none. A subclass whose callers give a text declares it as a parameter: ``hint: str``.

    >>> class LostError(LakehouseError):
    ...     "Files that are gone."
    ...     condition = "LOST"
    ...     table: str
    ...     files: Sequence[str]
    ...     primary = "table {table!r} lost {files}"
    >>> print(LostError("a", ["x", "y"]))
    table 'a' lost x, y [LOST]

    Attributes:
        condition: a stable name in upper case, for programs and runbooks.
        misspelt: the attribute whose nearest word among ``known`` is suggested instead of the
            hint, where there is a near one; or None.
        primary: one line, what is wrong with what.
        detail: sentences that explain, or None.
        hint: sentences that say what to do, or None.
        location: the place in a file, or None.
    """

    condition: ClassVar[str] = "LAKEHOUSE_ERROR"
    misspelt: ClassVar[str | None] = None
    primary: str
    detail: str | None
    hint: str | None
    location: Location | None

    def __init__(self) -> None:
        """Only subclasses are raised; each has a constructor of its parameters."""
        raise NotImplementedError("an error is raised as the subclass of its condition")

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        dataclass(eq=False, repr=False, match_args=False)(cls)

    def __post_init__(self) -> None:
        """Settle lists, which their owner may change, and fill in the texts."""
        given = vars(self)
        given.update({name: tuple(one) for name, one in given.items() if isinstance(one, list)})
        near = did_you_mean(getattr(self, self.misspelt), given["known"]) if self.misspelt else None
        self.primary = self._text("primary") or ""
        self.detail = self._text("detail")
        self.hint = near or self._text("hint")
        self.location = getattr(self, "location", None)
        Exception.__init__(self, self.render())

    def _text(self, name: str) -> str | None:
        if name in vars(self):
            text: str | None = vars(self)[name]
            return text
        template: str | None = getattr(type(self), name, None)
        return (template.format_map(_Attributes(self)) or None) if template else None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy the attributes; ``Exception`` would pass the text to the constructor."""
        return _restored, (type(self), self.args), vars(self)

    def render(self) -> str:
        """The message as a terminal shows it: one line, then indented detail and hint."""
        place = f"{self.location}: " if self.location else ""
        lines = [f"{place}{self.primary} [{self.condition}]"]
        if self.detail:
            lines.append(f"  Detail: {self.detail}")
        if self.hint:
            lines.append(f"  Hint: {self.hint}")
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
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


class LocatedError(LakehouseError):
    """The base of mistakes in files that a user wrote; every one names its place."""

    location: Location = field(kw_only=True)


class SubjectError(LocatedError):
    """The base of mistakes in a declaration.

    Attributes:
        subject: what is declared, as a message begins: ``gold view "orders"``.
    """

    subject: str


class ProblemsError(LakehouseError):
    """Several errors found in one pass, so that a user can fix them all at once."""

    condition = "PROBLEMS"
    problems: Sequence[LakehouseError]
    primary = "{count} found"

    @property
    def count(self) -> str:
        """How many, in words."""
        return counted(len(self.problems), "problem")

    def as_dict(self) -> dict[str, Any]:
        """As the base, and the errors as ``problems``."""
        return {**super().as_dict(), "problems": [one.as_dict() for one in self.problems]}

    def render(self) -> str:
        return "\n".join([*(problem.render() for problem in self.problems), self.primary])


class InvalidNameError(LakehouseError):
    """A name that is not ``layer.name`` with an allowed identifier."""

    condition = "INVALID_NAME"
    name: str
    location: Location | None = field(default=None, kw_only=True)
    primary = "{name!r} is not a table name"
    hint = (
        "Write bronze.NAME, silver.NAME or gold.NAME; NAME is up to 63 lower-case letters, digits "
        "and underscores and starts with a letter."
    )


class SettingError(LakehouseError):
    """A setting that is unknown or has a value that does not fit."""

    condition = "SETTING"
    key: str
    problem: str
    location: Location | None = field(default=None, kw_only=True)
    primary = "setting {key!r}: {problem}"
    hint = "Fix tidemark.yml or the environment variable TIDEMARK_{variable}."

    @property
    def variable(self) -> str:
        """The key as environment variables write it."""
        return self.key.upper().replace(".", "__")


class SettingsFileError(LocatedError):
    """A settings file that does not hold keys and values."""

    condition = "SETTINGS_FILE"
    problem: str
    primary = "the settings cannot be read: {problem}"
    hint = "Write keys and values as YAML, one 'key: value' per line."


class _Attributes:
    """What the templates of an error may name."""

    def __init__(self, error: LakehouseError) -> None:
        self._error = error

    def __getitem__(self, name: str) -> object:
        match getattr(self._error, name):
            case tuple() as values:
                return _Joined(values)
            case PurePath() as path:
                return str(path)
            case value:
                return value


class _Joined(tuple[object, ...]):
    """A sequence that is written with its format between the elements."""

    __slots__ = ()

    def __format__(self, separator: str) -> str:
        return (separator or ", ").join(map(str, self))


def _restored(kind: type[LakehouseError], args: tuple[object, ...]) -> LakehouseError:
    return kind.__new__(kind, *args)


def counted(number: int, word: str) -> str:
    """A number of things, in the singular or the plural.

    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def did_you_mean(word: str, known: Sequence[str]) -> str | None:
    """A sentence that suggests the nearest known word, in any case of letters, or None.

    >>> did_you_mean("grian", ["grain", "owner"])
    'Did you mean "grain"?'
    >>> did_you_mean("OWNER", ["grain", "owner"])
    'Did you mean "owner"?'
    """
    folded = {one.casefold(): one for one in reversed([*known])}
    close = get_close_matches(word, known, n=1, cutoff=_NEAR) or [
        folded[one] for one in get_close_matches(word.casefold(), folded, n=1, cutoff=_NEAR)
    ]
    return f'Did you mean "{close[0]}"?' if close else None


def first_line(text: str) -> str:
    r"""The first line of what another program said, as a sentence; empty if it said nothing.

    >>> first_line("connection refused\n  at line 1")
    'connection refused.'
    """
    return f"{text.strip().splitlines()[0]}." if text.strip() else ""
