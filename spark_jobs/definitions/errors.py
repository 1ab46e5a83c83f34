"""Conditions of invalid declaration files; each has a location."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY

from spark_jobs.errors import LakehouseError, LocatedError, Location, SubjectError


class DeclarationSyntaxError(LocatedError):
    """A file or header that is not YAML or JSON."""

    condition = "DECLARATION_SYNTAX"
    language: str
    problem: str
    primary = "this is not valid {language}: {problem}"
    hint = "Check indentation, colons, quotes and brackets at this place and just before it."


class UnknownKeyError(SubjectError):
    """An unknown key."""

    condition = "UNKNOWN_KEY"
    key: str
    known: Sequence[str]
    misspelt = "key"
    primary = '{subject} has an unexpected key "{key}"'
    hint = "Known keys are {known}."


class MissingKeyError(SubjectError):
    """A required key that is missing."""

    condition = "MISSING_KEY"
    key: str
    reason: str = ""
    primary = '{subject} has no key "{key}"'
    detail = "{reason}"
    hint = "Add a line that starts with '{key}:'."


class DuplicateKeyError(LocatedError):
    """A key that is written twice in one mapping."""

    condition = "DUPLICATE_KEY"
    key: str
    _: KW_ONLY
    first: Location
    primary = 'key "{key}" is written twice'
    hint = "Remove one of them; the first is in line {first.line}."


class UnexpectedValueError(SubjectError):
    """A value of another type, or not one of the allowed ones."""

    condition = "UNEXPECTED_VALUE"
    key: str
    problem: str
    hint: str
    primary = "{what} is not valid: {problem}"

    @property
    def what(self) -> str:
        return f'{self.subject}: "{self.key}"' if self.key else self.subject


class DurationError(SubjectError):
    """A duration that is not written as number and unit."""

    condition = "DURATION"
    key: str
    text: str
    primary = '{subject}: "{key}" is not a duration: {text!r}'
    hint = (
        'Write a whole number above zero and a unit, for example "15 minutes", "1 hour" or "7 '
        'days".'
    )


class ScheduleError(SubjectError):
    """A period whose runs would drift against the clock."""

    condition = "SCHEDULE"
    key: str
    period: str
    primary = '{subject}: "{key}" is {period}, which divides neither an hour nor a day'
    hint = (
        "Choose 1, 2, 3, 4, 5, 6, 10, 12, 15, 20 or 30 minutes, 1, 2, 3, 4, 6, 8 or 12 hours, 1 "
        "day or 1 week."
    )


class CronError(SubjectError):
    """A schedule that is not a cron expression of five fields, or never runs."""

    condition = "CRON"
    text: str
    problem: str
    primary = '{subject}: "schedule" is not a cron expression: {text!r}'
    detail = "{problem}."
    hint = (
        "Write minute, hour, day of month, month and day of week in quotes, for example "
        '"30 6 * * 1-5": at 06:30 from Monday to Friday.'
    )


class TimeZoneError(SubjectError):
    """An unknown time zone."""

    condition = "TIME_ZONE"
    text: str
    primary = '{subject}: "time_zone" is not a time zone: {text!r}'
    hint = 'Write a name of the IANA database, for example "Europe/Berlin" or "UTC".'


class UnknownColumnTypeError(SubjectError):
    """A column type that Spark SQL does not know or Delta cannot store."""

    condition = "UNKNOWN_COLUMN_TYPE"
    column: str
    type: str
    problem: str
    hint: str
    primary = '{subject}: column "{column}" has the type {type!r}: {problem}'


class KeyNotApplicableError(SubjectError):
    """A key that has no meaning for the source's format or the view's policy."""

    condition = "KEY_NOT_APPLICABLE"
    key: str
    reason: str
    hint: str = ""
    primary = '{subject} cannot have the key "{key}": {reason}'

    def __post_init__(self) -> None:
        self.hint = self.hint or f'Remove "{self.key}".'
        super().__post_init__()


class ColumnNotDeclaredError(SubjectError):
    """A key column of a source that is not among its columns."""

    condition = "COLUMN_NOT_DECLARED"
    key: str
    column: str
    known: Sequence[str]
    misspelt = "column"
    primary = '{subject}: "{key}" names column "{column}", which is not among its columns'
    hint = "Its columns are {known}."


class DuplicateColumnDeclarationError(SubjectError):
    """Two columns of a source whose names differ in case only."""

    condition = "DUPLICATE_COLUMN_DECLARATION"
    column: str
    primary = '{subject} has column "{column}" twice'
    hint = "Column names in Spark are case-insensitive: rename one of them."


class ReservedColumnError(SubjectError):
    """A column whose name starts with the project's own prefix."""

    condition = "RESERVED_COLUMN"
    column: str
    primary = '{subject} has a column with the reserved name "{column}"'
    hint = 'Names that start with "__" are reserved for columns that Tidemark adds: rename it.'


class ColumnNameError(SubjectError):
    """A column name that some of the systems cannot use."""

    condition = "COLUMN_NAME"
    column: str
    primary = "{subject} has a column with the name {column!r}"
    hint = (
        "Use letters, digits and underscores, starting with a letter, at most 63 of them; rename "
        "it with AS in a SELECT."
    )


class FileNameError(LakehouseError):
    """A file whose name cannot be the name of a table."""

    condition = "FILE_NAME"
    kind: str
    name: str
    _: KW_ONLY
    location: Location | None = None
    primary = "{name!r} cannot be the name of a {kind}"
    hint = (
        "The file's name is the table's name: up to 63 lower-case letters, digits and underscores, "
        "starting with a letter."
    )


class MisplacedFileError(LocatedError):
    """A file in a directory that is not read."""

    condition = "MISPLACED_FILE"
    hint: str
    primary = "files in this place are not read"


class DuplicateNameError(LocatedError):
    """Two files that declare the same name."""

    condition = "DUPLICATE_NAME"
    kind: str
    name: str
    _: KW_ONLY
    first: str
    primary = '{kind} "{name}" is declared twice'
    hint = "The other one is {first}: remove or rename one of them."


class DuplicateTopicError(LocatedError):
    """Two sources of the same topic."""

    condition = "DUPLICATE_TOPIC"
    topic: str
    _: KW_ONLY
    first: str
    primary = 'topic "{topic}" is already the topic of another source'
    hint = "{first} reads it: select from that source, or fix the topic."


class EmptyProjectError(LakehouseError):
    """A project without a source."""

    condition = "EMPTY_PROJECT"
    directory: str
    primary = "no source is declared in {directory}"
    hint = "Run 'tidemark new source NAME' here, or give another directory with --project."


class MissingHeaderError(LocatedError):
    """A SQL file that does not start with a header."""

    condition = "MISSING_HEADER"
    layer: str
    problem: str
    primary = "the file has no {layer} header: {problem}"
    hint = (
        "Start the file with a YAML comment: a line '/* {layer}', then for example 'description: "
        "...', then a line '*/'."
    )


class WrongLayerHeaderError(LocatedError):
    """A header of another layer than the file's directory."""

    condition = "WRONG_LAYER_HEADER"
    found: str
    layer: str
    primary = "a {found} header is in sql/{layer}/"
    hint = "Move the file to sql/{found}/, or write '/* {layer}'."


class DuplicateHeaderError(LocatedError):
    """A second header in a SQL file."""

    condition = "DUPLICATE_HEADER"
    primary = "the file has a second header"
    hint = (
        "One file declares one table: move the second header to another file, or merge the headers."
    )
