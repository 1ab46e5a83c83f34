"""Error conditions of SQL and of the dependency graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, field

from spark_jobs.errors import LakehouseError, LocatedError, Location, SubjectError


class SqlSyntaxError(LocatedError):
    """The text is not valid Spark SQL."""

    condition = "SQL_SYNTAX"
    problem: str
    primary = "this is not valid Spark SQL: {problem}"
    hint = (
        "Check this place and just before it: a comma, a parenthesis, a quote or a keyword is "
        "missing or superfluous."
    )


class SqlTooDeepError(LocatedError):
    """SQL nested too deeply to walk its tree."""

    condition = "SQL_TOO_DEEP"
    primary = "this SQL is nested too deeply"
    hint = "Remove parentheses, or move inner queries to a WITH clause or to other views."


class DuplicateRelationError(LocatedError):
    """Two relations of a FROM clause have the same name."""

    condition = "DUPLICATE_RELATION"
    name: str
    primary = 'two relations in one FROM clause have the name "{name}"'
    hint = "Give each relation its own alias."


class NotOneSelectError(LocatedError):
    """A file contains something else than one SELECT."""

    condition = "NOT_ONE_SELECT"
    problem: str
    primary = "the file must contain one SELECT: {problem}"
    hint = "Keep one SELECT; it may start with WITH. Declare another table in another file."


class UnknownTableError(SubjectError):
    """No file declares the table."""

    condition = "UNKNOWN_TABLE"
    table: str
    known: Sequence[str]
    misspelt = "table"
    primary = '{subject} reads unknown table "{table}"'
    hint = "{remedy}"

    @property
    def remedy(self) -> str:
        for name in reversed(self.known):
            if name.partition(".")[2] == self.table:
                return f'Did you mean "{name}"?'
        of_catalog = self.table.lower().partition(".")[2]
        if of_catalog in self.known:
            return f"Tables are named layer.name, without a catalog: write {of_catalog}."
        return (
            "Tables are named layer.name after their files: bronze.NAME for sources/NAME.yml, "
            "silver.NAME and gold.NAME for sql/silver/NAME.sql and sql/gold/NAME.sql."
        )


class ForbiddenInputError(SubjectError):
    """A table belongs to a layer that the reader may not read."""

    condition = "FORBIDDEN_INPUT"
    table: str
    reason: str
    hint: str
    primary = '{subject} may not read "{table}": {reason}'


class UnknownColumnError(SubjectError):
    """None of the tables in scope has the column."""

    condition = "UNKNOWN_COLUMN"
    column: str
    known: Sequence[str]
    _: KW_ONLY
    table: str | None = None
    misspelt = "column"
    primary = '{subject} uses unknown column "{column}"{of}'
    hint = "{remedy}"

    @property
    def of(self) -> str:
        return f' of "{self.table}"' if self.table else ""

    @property
    def remedy(self) -> str:
        if self.known:
            return f"Known columns are {', '.join(self.known)}."
        return "USING needs a column that both sides of the join have."


class UnknownRelationError(SubjectError):
    """A qualifier is not a table or alias of the FROM clause."""

    condition = "UNKNOWN_RELATION"
    relation: str
    column: str
    known: Sequence[str]
    misspelt = "relation"
    primary = '{subject} uses column "{column}" of "{relation}", which is not in FROM'
    hint = "FROM has {known}."


class AmbiguousColumnError(SubjectError):
    """More than one table in scope has the column."""

    condition = "AMBIGUOUS_COLUMN"
    column: str
    relations: Sequence[str]
    _: KW_ONLY
    alias: str = ""
    primary = '{subject} uses column "{column}", which is in {relations: and }'
    hint = "{remedy}"

    @property
    def remedy(self) -> str:
        if self.alias:
            return f'Write the column without "{self.alias}", or give the table another alias.'
        first, second, *_ = (f'"{one}.{self.column}"' for one in self.relations)
        return f"Write {first} or {second}."


class UnknownFunctionError(SubjectError):
    """The supported Spark version does not have the function."""

    condition = "UNKNOWN_FUNCTION"
    function: str
    known: Sequence[str]
    misspelt = "lowered"
    primary = '{subject} calls unknown function "{function}"'
    hint = "{remedy}"

    @property
    def lowered(self) -> str:
        return self.function.lower()

    @property
    def remedy(self) -> str:
        if self.lowered == "identifier":
            return "Names of tables and columns are read from the SQL: write the name itself."
        return "Only Spark's built-in functions are available."


class SelectStarError(SubjectError):
    """``SELECT *`` where the table's columns must be listed."""

    condition = "SELECT_STAR"
    columns: Sequence[str]
    primary = "{subject} selects * at the top level"
    detail = "A column added to an input would silently change this table."
    hint = "{remedy}"

    @property
    def remedy(self) -> str:
        return f"Write {', '.join(self.columns)}." if self.columns else "Name the columns."


class DuplicateColumnError(SubjectError):
    """Two output columns have the same name."""

    condition = "DUPLICATE_COLUMN"
    column: str
    primary = '{subject} has two columns "{column}"'
    hint = "Column names are case-insensitive: rename one of them with AS."


class UnnamedColumnError(SubjectError):
    """An output expression has no name."""

    condition = "UNNAMED_COLUMN"
    expression: str
    primary = "{subject} has a column without a name: {expression}"
    hint = "Add AS and a name."


class NotAProjectionError(SubjectError):
    """A silver SELECT does more than project and filter rows."""

    condition = "SILVER_NOT_A_PROJECTION"
    clause: str
    primary = "{subject} has {clause}"
    detail = (
        "A silver table is a projection of one source, row by row: columns, expressions over them "
        "and WHERE."
    )
    hint = "Do it in a gold view that reads this table."


class KeyNotInOutputError(SubjectError):
    """A key column is missing from the SELECT."""

    condition = "KEY_NOT_IN_OUTPUT"
    key: str
    column: str
    known: Sequence[str]
    misspelt = "column"
    primary = '{subject}: "{key}" needs column "{column}", which the SELECT does not return'
    hint = 'Select it, or name other columns with "{key}".'


class StrictNotIncrementalError(SubjectError):
    """A view with ``strategy: incremental`` cannot be incremental."""

    condition = "STRICT_NOT_INCREMENTAL"
    obstacle: str
    problem: str
    suggestion: str
    primary = (
        "{subject} declares strategy strict, but every refresh would be full: {problem} "
        "({obstacle})"
    )
    hint = "{suggestion}"


class NondeterministicError(SubjectError):
    """A function's result may differ between runs on the same input."""

    condition = "NONDETERMINISTIC"
    what: str
    hint: str
    primary = "{subject} is not deterministic: {what}"
    detail = "The SQL must give the same result each time, so that the table can equal it."


class CycleError(LocatedError):
    """Views depend on each other in a cycle."""

    condition = "CYCLE"
    path: Sequence[str]
    primary = "gold views have a circular dependency: {path: -> }"
    hint = "Move the shared part to a view that both read."


class GraphTooDeepError(LocatedError):
    """A chain of views is longer than the settings allow."""

    condition = "GRAPH_TOO_DEEP"
    view: str
    most: int
    primary = (
        'gold view "{view}" is above {most} tiers of views, and at most {most} tiers are allowed'
    )
    detail = "A change reaches the top view only after a refresh of each tier."
    hint = (
        "Read a view on a lower tier, merge views that have only one reader, or raise "
        "graph.most_tiers in tidemark.yml."
    )


class TooManyReadersError(LocatedError):
    """More views read a table than the settings allow."""

    condition = "TOO_MANY_READERS"
    table: str
    readers: int
    most: int
    primary = '{readers} gold views read "{table}", and at most {most} are allowed'
    detail = "One change of the table would refresh all of them."
    hint = (
        "Create one view for the part of the table that several views need, or raise "
        "graph.most_readers in tidemark.yml."
    )


class SuiteWithoutTableError(LocatedError):
    """A suite's table is not declared."""

    condition = "SUITE_WITHOUT_TABLE"
    table: str
    known: Sequence[str]
    misspelt = "table"
    primary = 'the suite is for unknown table "{table}"'
    hint = "A suite has the same name as its table's SQL file."


class DeltaSchemaError(SubjectError):
    """The table of a Delta source without declared columns cannot be read."""

    condition = "DELTA_SCHEMA"
    delta_location: str
    problem: str
    primary = '{subject}: the columns of "{delta_location}" are unknown: {problem}'
    hint = 'Fix "location", write the table first, or declare its columns.'


class SeedFileError(LakehouseError):
    """The file of a source cannot be used."""

    condition = "SEED_FILE"
    path: str
    problem: str
    location: Location | None = field(default=None, kw_only=True)
    primary = "the file {path!r} cannot be used: {problem}"
    hint = "Put the file into seeds/ of the project and name it in 'path'."


class SeedHeaderError(LakehouseError):
    """A file has other columns than its source declares."""

    condition = "SEED_HEADER"
    source: str
    file: str
    problem: str
    location: Location | None = field(default=None, kw_only=True)
    primary = 'source "{source}": the columns of {file} do not match: {problem}'
    hint = "The file must have each declared column once, in any order, and no other."


_UNREADABLE = {
    "CSV": "Save the file as UTF-8, and look for an unclosed quote",
    "Parquet": "Write the file again",
}


class SeedUnreadableError(LakehouseError):
    """The file cannot be divided into rows."""

    condition = "SEED_UNREADABLE"
    path: str
    form: str
    problem: str
    location: Location | None = field(default=None, kw_only=True)
    primary = "{path} cannot be read as {form}: {problem}"
    hint = "{remedy}. The table does not change."

    @property
    def remedy(self) -> str:
        """What to do with the file."""
        return _UNREADABLE[self.form]


class SeedTypeError(LakehouseError):
    """A column of a Parquet file has a type whose values cannot be of the declared type."""

    condition = "SEED_TYPE"
    source: str
    file: str
    column: str
    found: str
    declared: str
    location: Location | None = field(default=None, kw_only=True)
    primary = 'source "{source}": column "{column}" of {file} is {found}, declared as {declared}'
    hint = "Declare the type of the file, or write the file with the declared type."


class SinkTargetError(SubjectError):
    """The topic, table, prefix or name of a sink cannot be used."""

    condition = "SINK_TARGET"
    key: str
    value: str
    _: KW_ONLY
    hint: str
    primary = '{subject}: "{key}" cannot be {value!r}'


class DuplicateSinkError(SubjectError):
    """The target or name of a sink is already used by another sink or a source."""

    condition = "DUPLICATE_SINK"
    what: str
    _: KW_ONLY
    first: str
    primary = "{subject}: {what} is already in use"
    detail = "{first} declares it."
    hint = 'Choose another target for the sink; set another name with "name".'


class SinkKeysError(SubjectError):
    """A sink has no columns that identify its table's rows."""

    condition = "SINK_KEYS"
    problem: str
    _: KW_ONLY
    hint: str
    primary = "{subject}: {problem}"
