"""Error conditions of SQL whose names resolve, but which Spark rejects."""

from __future__ import annotations

from dataclasses import KW_ONLY

from spark_jobs.errors import SubjectError


class UngroupedColumnError(SubjectError):
    """A column next to aggregates is neither grouped nor aggregated."""

    condition = "UNGROUPED_COLUMN"
    column: str
    _: KW_ONLY
    grouped: bool
    primary = '{subject}: column "{column}" is used outside of {where}'
    hint = (
        "Add {column} to GROUP BY, write GROUP BY ALL, or aggregate it: MAX({column}), "
        "ANY_VALUE({column})."
    )

    @property
    def where(self) -> str:
        return "GROUP BY" if self.grouped else "a query of aggregates without GROUP BY"


class MisplacedAggregateError(SubjectError):
    """An aggregate or window function in a clause that is evaluated before it."""

    condition = "MISPLACED_AGGREGATE"
    call: str
    clause: str
    _: KW_ONLY
    hint: str
    primary = "{subject}: {call} is not allowed in {clause}"


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
    """An operator has a time and a number as operands."""

    condition = "INCOMPARABLE_TYPES"
    expression: str
    left: str
    right: str
    primary = "{subject}: {expression} combines {left} and {right}"
    hint = (
        "Spark does not convert them. Compare times with times, as in TIMESTAMP '2026-01-31 "
        "00:00:00', and add an interval: created_at + INTERVAL 1 DAY."
    )


class QuotedTableError(SubjectError):
    """A table's layer and name are in one pair of backticks, so that they are one name."""

    condition = "QUOTED_TABLE"
    name: str
    primary = "{subject}: `{name}` is one name with a dot in it, not a table of a layer"
    hint = "Write {name} without back-ticks."
