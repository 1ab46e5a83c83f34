"""Conditions of files that do not say what they must; every one names its place."""

from __future__ import annotations

from collections.abc import Sequence

from spark_jobs.errors import LakehouseError, Location, did_you_mean


class DeclarationSyntaxError(LakehouseError):
    """A file, or the header of one, that is not YAML or JSON."""

    condition = "DECLARATION_SYNTAX"

    def __init__(self, language: str, problem: str, *, location: Location) -> None:
        self.language = language
        super().__init__(
            f"this is not {language}: {problem}",
            hint="Check indentation, colons, quotes and brackets at this place and just before it.",
            location=location,
        )


class UnknownKeyError(LakehouseError):
    """A key that the declaration does not have."""

    condition = "UNKNOWN_KEY"

    def __init__(self, subject: str, key: str, known: Sequence[str], *, location: Location) -> None:
        self.key = key
        super().__init__(
            f'{subject} has an unexpected key "{key}"',
            hint=did_you_mean(key, known) or f"Known keys are {', '.join(known)}.",
            location=location,
        )


class MissingKeyError(LakehouseError):
    """A key that the declaration must have."""

    condition = "MISSING_KEY"

    def __init__(self, subject: str, key: str, reason: str = "", *, location: Location) -> None:
        self.key = key
        super().__init__(
            f'{subject} has no key "{key}"',
            detail=reason or None,
            hint=f"Add a line that starts with '{key}:'.",
            location=location,
        )


class DuplicateKeyError(LakehouseError):
    """A key that is written twice in one mapping."""

    condition = "DUPLICATE_KEY"

    def __init__(self, key: str, *, first: Location, location: Location) -> None:
        self.key = key
        super().__init__(
            f'key "{key}" is written twice',
            hint=f"Keep one of them; the first is in line {first.line}.",
            location=location,
        )


class UnexpectedValueError(LakehouseError):
    """A value of another type or outside the allowed words."""

    condition = "UNEXPECTED_VALUE"

    def __init__(
        self, subject: str, key: str, problem: str, hint: str, *, location: Location
    ) -> None:
        self.key = key
        what = f'{subject}: "{key}"' if key else subject
        super().__init__(f"{what} does not fit: {problem}", hint=hint, location=location)


class DurationError(LakehouseError):
    """A length of time that is not written as number and unit."""

    condition = "DURATION"

    def __init__(self, subject: str, key: str, text: str, *, location: Location) -> None:
        self.text = text
        super().__init__(
            f'{subject}: "{key}" is not a length of time: {text!r}',
            hint='Write a whole number above zero and a unit, for example "15 minutes", '
            '"1 hour" or "7 days".',
            location=location,
        )


class ScheduleError(LakehouseError):
    """A period whose runs would drift against the clock."""

    condition = "SCHEDULE"

    def __init__(self, subject: str, key: str, period: str, *, location: Location) -> None:
        self.key = key
        self.period = period
        super().__init__(
            f'{subject}: "{key}" is {period}, which divides neither an hour nor a day',
            hint="Choose 1, 2, 3, 4, 5, 6, 10, 12, 15, 20 or 30 minutes, 1, 2, 3, 4, 6, 8 or 12 "
            "hours, 1 day or 1 week.",
            location=location,
        )


class UnknownColumnTypeError(LakehouseError):
    """A column type that Spark SQL does not know or Delta cannot store."""

    condition = "UNKNOWN_COLUMN_TYPE"

    def __init__(
        self, subject: str, column: str, text: str, problem: str, hint: str, *, location: Location
    ) -> None:
        self.column = column
        self.type = text
        super().__init__(
            f'{subject}: column "{column}" has the type {text!r}: {problem}',
            hint=hint,
            location=location,
        )


class KeyNotApplicableError(LakehouseError):
    """A key that has no meaning for the source's format or the view's policy."""

    condition = "KEY_NOT_APPLICABLE"

    def __init__(
        self, subject: str, key: str, reason: str, hint: str = "", *, location: Location
    ) -> None:
        self.key = key
        super().__init__(
            f'{subject} cannot have the key "{key}": {reason}',
            hint=hint or f'Remove "{key}".',
            location=location,
        )


class ColumnNotDeclaredError(LakehouseError):
    """A key column of a source that is not among its columns."""

    condition = "COLUMN_NOT_DECLARED"

    def __init__(
        self, subject: str, key: str, column: str, known: Sequence[str], *, location: Location
    ) -> None:
        self.column = column
        super().__init__(
            f'{subject}: "{key}" names column "{column}", which is not among its columns',
            hint=did_you_mean(column, known) or f"Its columns are {', '.join(known)}.",
            location=location,
        )


class DuplicateColumnDeclarationError(LakehouseError):
    """Two columns of a source whose names differ in case only."""

    condition = "DUPLICATE_COLUMN_DECLARATION"

    def __init__(self, subject: str, column: str, *, location: Location) -> None:
        self.column = column
        super().__init__(
            f'{subject} has column "{column}" twice',
            hint="Spark reads column names without regard to case: rename one of them.",
            location=location,
        )


class ReservedColumnError(LakehouseError):
    """A column whose name starts with the project's own prefix."""

    condition = "RESERVED_COLUMN"

    def __init__(self, subject: str, column: str, *, location: Location) -> None:
        self.column = column
        super().__init__(
            f'{subject} has a column with the reserved name "{column}"',
            hint='Names that start with "__" are kept for columns that Tidemark adds: rename it.',
            location=location,
        )


class ColumnNameError(LakehouseError):
    """A column name that cannot be written in every place that a column goes."""

    condition = "COLUMN_NAME"

    def __init__(self, subject: str, column: str, *, location: Location) -> None:
        self.column = column
        super().__init__(
            f"{subject} has a column with the name {column!r}",
            hint="Use letters, digits and underscores, starting with a letter, at most 63 of them; "
            "rename it with AS in a SELECT.",
            location=location,
        )


class FileNameError(LakehouseError):
    """A file whose name cannot be the name of a table."""

    condition = "FILE_NAME"

    def __init__(self, kind: str, name: str, *, location: Location | None = None) -> None:
        self.name = name
        super().__init__(
            f"{name!r} cannot be the name of a {kind}",
            hint="The file's name is the table's name: up to 63 lower-case letters, digits and "
            "underscores, starting with a letter.",
            location=location,
        )


class MisplacedFileError(LakehouseError):
    """A file in a directory that nothing reads."""

    condition = "MISPLACED_FILE"

    def __init__(self, hint: str, *, location: Location) -> None:
        super().__init__("nothing reads this file here", hint=hint, location=location)


class DuplicateNameError(LakehouseError):
    """Two files that declare the same thing."""

    condition = "DUPLICATE_NAME"

    def __init__(self, kind: str, name: str, *, first: str, location: Location) -> None:
        self.name = name
        super().__init__(
            f'{kind} "{name}" is declared twice',
            hint=f"The other one is {first}: remove or rename one of them.",
            location=location,
        )


class DuplicateTopicError(LakehouseError):
    """Two sources that would land the same topic twice."""

    condition = "DUPLICATE_TOPIC"

    def __init__(self, topic: str, *, first: str, location: Location) -> None:
        self.topic = topic
        super().__init__(
            f'topic "{topic}" is already the topic of another source',
            hint=f"{first} lands it: select from that source, or mend the topic.",
            location=location,
        )


class EmptyProjectError(LakehouseError):
    """A directory without a source."""

    condition = "EMPTY_PROJECT"

    def __init__(self, directory: str) -> None:
        self.directory = directory
        super().__init__(
            f"no source is declared in {directory}",
            hint="Run 'tidemark new source NAME' here, or give another directory with --project.",
        )


class MissingHeaderError(LakehouseError):
    """A SQL file that does not start with a header."""

    condition = "MISSING_HEADER"

    def __init__(self, layer: str, problem: str, *, location: Location) -> None:
        self.layer = layer
        super().__init__(
            f"the file has no {layer} header: {problem}",
            hint=f"Start the file with a comment of YAML: a line '/* {layer}', then for example "
            "'description: ...', then a line '*/'.",
            location=location,
        )


class WrongLayerHeaderError(LakehouseError):
    """A header of another layer than the file's directory."""

    condition = "WRONG_LAYER_HEADER"

    def __init__(self, found: str, layer: str, *, location: Location) -> None:
        self.found = found
        self.layer = layer
        super().__init__(
            f"a {found} header stands in sql/{layer}/",
            hint=f"Move the file to sql/{found}/, or write '/* {layer}'.",
            location=location,
        )


class DuplicateHeaderError(LakehouseError):
    """A second header in a SQL file."""

    condition = "DUPLICATE_HEADER"

    def __init__(self, *, location: Location) -> None:
        super().__init__(
            "the file has a second header",
            hint="One file declares one table: move the second to a file of its own, or merge "
            "the headers.",
            location=location,
        )
