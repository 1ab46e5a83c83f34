"""Error conditions of SQL whose names resolve, but which Spark rejects."""

from __future__ import annotations

from dataclasses import KW_ONLY

from spark_jobs.errors import LocatedError, SubjectError, counted
from spark_jobs.graph.function_arguments import Arguments


class UngroupedColumnError(SubjectError):
    """A column next to aggregates is neither grouped nor aggregated."""

    condition = "UNGROUPED_COLUMN"
    column: str
    _: KW_ONLY
    grouped: bool
    qualify: bool = False
    primary = '{subject}: column "{column}" is used {where}'
    hint = "{remedy}"

    @property
    def where(self) -> str:
        if self.qualify:
            return "in QUALIFY, which finds outputs and what GROUP BY has, but no calls in it"
        return (
            f"outside of {'GROUP BY' if self.grouped else 'a query of aggregates without GROUP BY'}"
        )

    @property
    def remedy(self) -> str:
        if self.qualify:
            return "Add its expression to the SELECT list AS a name, and use this name."
        return (
            f"Add {self.column} to GROUP BY, write GROUP BY ALL, or aggregate it: "
            f"MAX({self.column}), ANY_VALUE({self.column})."
        )


class MisplacedAggregateError(SubjectError):
    """An aggregate or window function in a clause that is evaluated before it."""

    condition = "MISPLACED_AGGREGATE"
    call: str
    clause: str
    _: KW_ONLY
    hint: str
    primary = "{subject}: {call} is not allowed in {clause}"


class MisplacedStarError(SubjectError):
    """A star inside an expression; Spark expands it only in a SELECT list or in arguments."""

    condition = "MISPLACED_STAR"
    within: str
    primary = "{subject}: a star is not allowed in {within}"
    hint = "Name the column."


class MisplacedAliasError(SubjectError):
    """An output of a SELECT, used by its alias where only columns of tables are known."""

    condition = "MISPLACED_ALIAS"
    name: str
    clause: str
    primary = '{subject}: "{name}" is an output of the same SELECT, which {clause} cannot use'
    hint = "Repeat its expression there, or compute {name} in a subquery."


class CorrelatedColumnError(SubjectError):
    """A column of a query around a subquery, where Spark takes none."""

    condition = "CORRELATED_COLUMN"
    column: str
    clause: str
    _: KW_ONLY
    hint: str
    primary = '{subject}: "{column}" is a column of a query around, which {clause} cannot use'


class SetArityError(SubjectError):
    """The queries of a UNION, INTERSECT or EXCEPT have different numbers of columns."""

    condition = "SET_ARITY"
    word: str
    left: int
    right: int
    primary = "{subject}: the queries of {word} have {left} and {right} columns"
    hint = (
        "Select the same number of columns in both, in the same order; add CAST(NULL AS type) AS "
        "name for a missing column."
    )


class IncomparableTypesError(SubjectError):
    """An operator, or the branches of a CASE, have types that Spark cannot reconcile."""

    condition = "INCOMPARABLE_TYPES"
    expression: str
    left: str
    right: str
    primary = "{subject}: {expression} combines {left} and {right}"
    hint = (
        "Spark does not convert them. Compare times with times, as in TIMESTAMP '2026-01-31 "
        "00:00:00', add an interval: created_at + INTERVAL 1 DAY, or CAST one side to the type of "
        "the other."
    )


class NotConditionError(SubjectError):
    """A condition that is not Boolean."""

    condition = "NOT_A_CONDITION"
    expression: str
    kind: str
    primary = "{subject}: {expression} is {kind}, and stands where a condition is needed"
    hint = "Compare it: {expression} <> 0 for a number, {expression} IS NOT NULL for any value."


class ArgumentTypeError(SubjectError):
    """A sum, a sign or a cast of a type that it does not accept."""

    condition = "ARGUMENT_TYPE"
    call: str
    kind: str
    _: KW_ONLY
    hint: str
    primary = "{subject}: {call} cannot take {kind}"


class CastTypeError(SubjectError):
    """A cast to a type that Spark does not have."""

    condition = "CAST_TYPE"
    written: str
    problem: str
    _: KW_ONLY
    hint: str
    primary = "{subject}: a cast to {written}: {problem}"


class WindowError(SubjectError):
    """A window function without a window, or with one that it does not allow."""

    condition = "WINDOW"
    call: str
    problem: str
    _: KW_ONLY
    hint: str
    primary = "{subject}: {call} {problem}"


class SubqueryColumnsError(SubjectError):
    """A subquery in place of a value that does not have exactly one column."""

    condition = "SUBQUERY_COLUMNS"
    count: int
    wanted: int
    primary = "{subject}: a subquery has {found}, but {wanted} is needed in its place"
    hint = "Select only what is compared; other columns need a JOIN."

    @property
    def found(self) -> str:
        return counted(self.count, "column")


class AliasColumnsError(SubjectError):
    """An alias that names more or fewer columns than its relation has."""

    condition = "ALIAS_COLUMNS"
    names: int
    columns: int
    primary = "{subject}: an alias names {named}, but its relation has {held}"
    hint = "Name all columns in their order, or none."

    @property
    def named(self) -> str:
        return counted(self.names, "column")

    @property
    def held(self) -> str:
        return counted(self.columns, "column")


class QuotedTableError(SubjectError):
    """A table's layer and name in one pair of backticks, which make them one name."""

    condition = "QUOTED_TABLE"
    name: str
    primary = "{subject}: `{name}` is one name with a dot in it, not a table of a layer"
    hint = "Write {name} without backticks."


class LiteralError(SubjectError):
    """An invalid literal of a date, a time or an interval."""

    condition = "LITERAL"
    literal: str
    _: KW_ONLY
    hint: str
    primary = "{subject}: Spark cannot read {literal}"


class GeneratorError(SubjectError):
    """A function that returns several rows, in place of a value."""

    condition = "GENERATOR"
    call: str
    problem: str
    primary = "{subject}: {call} {problem}"
    hint = (
        "It gives several rows: write LATERAL VIEW EXPLODE(…) t AS name behind FROM, and use the "
        "column t.name."
    )


class PositionError(SubjectError):
    """A number in ORDER BY or GROUP BY without a selected column.

    Attributes:
        columns: the number of selected columns; None: the position is that of a star whose columns
            are not known.
    """

    condition = "POSITION"
    clause: str
    position: int
    columns: int | None
    primary = "{subject}: {clause} {position} {problem}"
    hint = "Count from 1, or write the name of the column."

    @property
    def problem(self) -> str:
        if self.columns is None:
            return "counts the columns of a star, which are not known here"
        return f"is no position among {counted(self.columns, 'selected column')}"


class DuplicateCteError(SubjectError):
    """Two queries of one WITH have the same name."""

    condition = "DUPLICATE_CTE"
    name: str
    primary = '{subject}: WITH has two queries of the name "{name}"'
    hint = "Give each its own name."


class FunctionArgumentsError(LocatedError):
    """A function is called with a wrong number of arguments."""

    condition = "FUNCTION_ARGUMENTS"
    name: str
    count: int
    takes: Arguments
    primary = "{called} has {counted}, and takes {takes.in_words}"
    hint = "{remedy}"

    @property
    def called(self) -> str:
        return self.name.upper()

    @property
    def counted(self) -> str:
        return counted(self.count, "argument")

    @property
    def remedy(self) -> str:
        if not self.takes.signature:
            return "Spark's list of functions describes its arguments."
        return f"Write {self.called}{self.takes.signature}."
