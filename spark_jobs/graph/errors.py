"""Conditions of SQL and of the graph that it makes."""

from __future__ import annotations

from collections.abc import Sequence

from spark_jobs.errors import LakehouseError, Location, did_you_mean


class SqlSyntaxError(LakehouseError):
    """Text that is not SQL as Spark reads it."""

    condition = "SQL_SYNTAX"

    def __init__(self, problem: str, *, location: Location) -> None:
        super().__init__(
            f"this is not Spark SQL: {problem}",
            hint="Look at this place and just before it: a comma, a bracket, a quote or a keyword "
            "is missing or too many.",
            location=location,
        )


class SqlTooDeepError(LakehouseError):
    """SQL with so many levels of nesting that its tree cannot be walked."""

    condition = "SQL_TOO_DEEP"

    def __init__(self, *, location: Location) -> None:
        super().__init__(
            "this SQL is nested too deeply to be read",
            hint="Remove brackets, or give the inner queries names in a WITH clause or views of "
            "their own.",
            location=location,
        )


class DuplicateRelationError(LakehouseError):
    """Two relations of one FROM clause with the same name."""

    condition = "DUPLICATE_RELATION"

    def __init__(self, name: str, *, location: Location) -> None:
        self.name = name
        super().__init__(
            f'two relations of one FROM clause are called "{name}"',
            hint="Give each relation an alias of its own.",
            location=location,
        )


class NotOneSelectError(LakehouseError):
    """A file with another statement than one SELECT."""

    condition = "NOT_ONE_SELECT"

    def __init__(self, problem: str, *, location: Location) -> None:
        super().__init__(
            f"the file must hold one SELECT: {problem}",
            hint="Keep one SELECT; it may start with WITH. A further table is a further file.",
            location=location,
        )


class UnknownTableError(LakehouseError):
    """A table that no file declares."""

    condition = "UNKNOWN_TABLE"

    def __init__(
        self, subject: str, table: str, known: Sequence[str], *, location: Location
    ) -> None:
        self.table = table
        names = [name.partition(".")[2] for name in known]
        where = dict(zip(names, known, strict=True))
        hint = did_you_mean(table, known) or (
            f'Did you mean "{where[table]}"?' if table in where else None
        )
        super().__init__(
            f'{subject} reads unknown table "{table}"',
            hint=hint
            or "Tables are named layer.name after their files: bronze.NAME for sources/NAME.yml, "
            "silver.NAME and gold.NAME for sql/silver/NAME.sql and sql/gold/NAME.sql.",
            location=location,
        )


class ForbiddenInputError(LakehouseError):
    """A table of a layer that the reader may not read."""

    condition = "FORBIDDEN_INPUT"

    def __init__(
        self, subject: str, table: str, reason: str, hint: str, *, location: Location
    ) -> None:
        self.table = table
        super().__init__(
            f'{subject} may not read "{table}": {reason}', hint=hint, location=location
        )


class UnknownColumnError(LakehouseError):
    """A column that none of the tables in reach has."""

    condition = "UNKNOWN_COLUMN"

    def __init__(
        self,
        subject: str,
        column: str,
        known: Sequence[str],
        *,
        table: str | None = None,
        location: Location,
    ) -> None:
        self.column = column
        self.table = table
        of = f' of "{table}"' if table else ""
        super().__init__(
            f'{subject} names unknown column "{column}"{of}',
            hint=did_you_mean(column, known)
            or (
                f"Known columns are {', '.join(known)}."
                if known
                else "USING needs a column that both sides of the join have."
            ),
            location=location,
        )


class UnknownRelationError(LakehouseError):
    """A qualifier that is no table or alias of the FROM clause."""

    condition = "UNKNOWN_RELATION"

    def __init__(
        self, subject: str, relation: str, column: str, known: Sequence[str], *, location: Location
    ) -> None:
        self.relation = relation
        super().__init__(
            f'{subject} names column "{column}" of "{relation}", which FROM does not bring in',
            hint=did_you_mean(relation, known) or f"FROM brings in {', '.join(known)}.",
            location=location,
        )


class AmbiguousColumnError(LakehouseError):
    """A column that more than one table has."""

    condition = "AMBIGUOUS_COLUMN"

    def __init__(
        self, subject: str, column: str, relations: Sequence[str], *, location: Location
    ) -> None:
        self.column = column
        super().__init__(
            f'{subject} names column "{column}", which {" and ".join(relations)} have',
            hint=f'Write "{relations[0]}.{column}" or "{relations[1]}.{column}".',
            location=location,
        )


class UnknownFunctionError(LakehouseError):
    """A function that the pinned Spark does not have."""

    condition = "UNKNOWN_FUNCTION"

    def __init__(
        self, subject: str, function: str, known: Sequence[str], *, location: Location
    ) -> None:
        self.function = function
        super().__init__(
            f'{subject} calls unknown function "{function}"',
            hint=did_you_mean(function.lower(), known)
            or "Only Spark's built-in functions can be called.",
            location=location,
        )


class SelectStarError(LakehouseError):
    """``SELECT *`` where a table's columns are decided."""

    condition = "SELECT_STAR"

    def __init__(self, subject: str, columns: Sequence[str], *, location: Location) -> None:
        self.columns = tuple(columns)
        super().__init__(
            f"{subject} selects * at the top",
            detail="A column that is added to an input would silently change this table.",
            hint=f"Write {', '.join(columns)}." if columns else "Name the columns.",
            location=location,
        )


class DuplicateColumnError(LakehouseError):
    """Two output columns of one name."""

    condition = "DUPLICATE_COLUMN"

    def __init__(self, subject: str, column: str, *, location: Location) -> None:
        self.column = column
        super().__init__(
            f'{subject} has two columns "{column}"',
            hint="Names are the same without regard to case: give one of them another with AS.",
            location=location,
        )


class UnnamedColumnError(LakehouseError):
    """An output expression without a name."""

    condition = "UNNAMED_COLUMN"

    def __init__(self, subject: str, expression: str, *, location: Location) -> None:
        self.expression = expression
        super().__init__(
            f"{subject} has a column without a name: {expression}",
            hint="Write AS and a name behind it.",
            location=location,
        )


class NotAProjectionError(LakehouseError):
    """A silver SELECT that does more than compute and filter row by row."""

    condition = "SILVER_NOT_A_PROJECTION"

    def __init__(self, subject: str, clause: str, *, location: Location) -> None:
        self.clause = clause
        super().__init__(
            f"{subject} has {clause}",
            detail="A silver table holds the records of one source, row by row: columns, "
            "expressions over them and WHERE.",
            hint="Do it in a gold view that reads this table.",
            location=location,
        )


class KeyNotInOutputError(LakehouseError):
    """A key of a table that its SELECT does not give out."""

    condition = "KEY_NOT_IN_OUTPUT"

    def __init__(
        self, subject: str, key: str, column: str, known: Sequence[str], *, location: Location
    ) -> None:
        self.column = column
        super().__init__(
            f'{subject}: "{key}" needs column "{column}", which its SELECT does not give out',
            hint=did_you_mean(column, known) or f'Select it, or name other columns with "{key}".',
            location=location,
        )


class StrictNotIncrementalError(LakehouseError):
    """A view that must be incremental and cannot be."""

    condition = "STRICT_NOT_INCREMENTAL"

    def __init__(
        self, subject: str, obstacle: str, problem: str, suggestion: str, *, location: Location
    ) -> None:
        self.obstacle = obstacle
        super().__init__(
            f"{subject} declares strategy strict, and every refresh would be full: {problem} "
            f"({obstacle})",
            hint=suggestion,
            location=location,
        )


class NondeterministicError(LakehouseError):
    """A function whose result differs from run to run on the same input."""

    condition = "NONDETERMINISTIC"

    def __init__(self, subject: str, what: str, hint: str, *, location: Location) -> None:
        self.what = what
        super().__init__(
            f"{subject} is not determined by its inputs: {what}",
            detail="A table that is to equal its SQL must come out the same each time.",
            hint=hint,
            location=location,
        )


class CycleError(LakehouseError):
    """Views that read each other in a circle."""

    condition = "CYCLE"

    def __init__(self, path: Sequence[str], *, location: Location) -> None:
        self.path = tuple(path)
        super().__init__(
            f"gold views read each other in a circle: {' -> '.join(path)}",
            hint="Move what they share to a view that both read.",
            location=location,
        )


class GraphTooDeepError(LakehouseError):
    """A view at the end of a longer chain of views than the project allows."""

    condition = "GRAPH_TOO_DEEP"

    def __init__(self, view: str, most: int, *, location: Location) -> None:
        self.view = view
        self.most = most
        super().__init__(
            f'gold view "{view}" stands above {most} tiers of views, and no more than {most} tiers '
            "are allowed",
            detail="Each tier adds its refresh to the time after which a change is seen on top.",
            hint="Read a view further down, merge views that have one reader into it, or raise "
            "graph.most_tiers in tidemark.yml.",
            location=location,
        )


class TooManyReadersError(LakehouseError):
    """A table that more views read than the project allows."""

    condition = "TOO_MANY_READERS"

    def __init__(self, table: str, readers: int, most: int, *, location: Location) -> None:
        self.table = table
        self.readers = readers
        self.most = most
        super().__init__(
            f'{readers} gold views read "{table}", and no more than {most} may',
            detail="One change of the table would make all of them refresh.",
            hint="Let views that need the same part of it read one view that holds that part, or "
            "raise graph.most_readers in tidemark.yml.",
            location=location,
        )


class SuiteWithoutTableError(LakehouseError):
    """A suite for a table that no file declares."""

    condition = "SUITE_WITHOUT_TABLE"

    def __init__(self, table: str, known: Sequence[str], *, location: Location) -> None:
        self.table = table
        super().__init__(
            f'the suite judges unknown table "{table}"',
            hint=did_you_mean(table, known) or "A suite has the name of its table's SQL file.",
            location=location,
        )


class DeltaSchemaError(LakehouseError):
    """A Delta source without declared columns, whose table cannot be read."""

    condition = "DELTA_SCHEMA"

    def __init__(
        self, subject: str, delta_location: str, problem: str, *, location: Location
    ) -> None:
        self.delta_location = delta_location
        super().__init__(
            f'{subject}: no columns are known for "{delta_location}": {problem}',
            hint='Correct "location", write the table first, or declare its columns.',
            location=location,
        )


class SinkTargetError(LakehouseError):
    """A sink's topic, table, prefix or name that cannot be used as it is written."""

    condition = "SINK_TARGET"

    def __init__(
        self, subject: str, key: str, value: str, *, hint: str, location: Location
    ) -> None:
        self.key = key
        self.value = value
        super().__init__(
            f'{subject}: "{key}" cannot be {value!r}',
            hint=hint,
            location=location,
        )


class DuplicateSinkError(LakehouseError):
    """A sink whose place or name is taken: by another sink, or by a source."""

    condition = "DUPLICATE_SINK"

    def __init__(self, subject: str, what: str, *, first: str, location: Location) -> None:
        self.what = what
        super().__init__(
            f"{subject}: {what} is taken already",
            detail=f"{first} declares it.",
            hint='Give the sink another place; another name is given with "name".',
            location=location,
        )


class SinkKeysError(LakehouseError):
    """A sink without columns that tell the rows of its table apart."""

    condition = "SINK_KEYS"

    def __init__(self, subject: str, problem: str, *, hint: str, location: Location) -> None:
        super().__init__(f"{subject}: {problem}", hint=hint, location=location)
