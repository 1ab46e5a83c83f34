"""The expectations of a silver table's suite as expressions over a row.

They give the results of Great Expectations on Spark, which a test compares. A value that is NULL
passes, except in the expectations about NULL itself and in some about two columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from operator import and_, or_
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as sf

from spark_jobs.definitions import batch_rules as rules
from spark_jobs.definitions.batch_rules import BatchRule
from spark_jobs.definitions.quarantine_reasons import QuarantineReason
from spark_jobs.graph.manifest import SilverEntry
from spark_jobs.silver.parse.documents import problem

# Positions of the expectations that a row fails, and of those in which it counts.
FAILED = "__failed"
COUNTED = "__counted"
Values = Callable[[str], Column]


def rule_problems(
    entry: SilverEntry,
    outputs: Mapping[str, Column],
    *,
    written: Column,
    unsent: Mapping[str, Column] | None = None,
) -> list[Column]:
    """The problem of a row for each expectation that sends failing rows to quarantine.

    Args:
        entry: the table with its suite.
        outputs: the columns of the SELECT, by name.
        written: whether the record is a row for the table, not a deletion.
        unsent: whether the value of a column was not sent; it is filled in later from the row
            before, which was judged itself.
    """
    found = []
    for rule in entry.quarantining:
        judged = written
        for name in rule.columns:
            if unsent and name in unsent:
                judged &= ~unsent[name]
        reason = problem(QuarantineReason.EXPECTATION_FAILED, rule.name)
        found.append(sf.when(judged & fails(rule, outputs.__getitem__), reason))
    return found


def judged(entry: SilverEntry, outputs: Mapping[str, Column]) -> dict[str, Column]:
    """The columns ``FAILED`` and ``COUNTED`` of a row, by name; empty without a suite.

    Args:
        entry: the table with its suite.
        outputs: the columns of the SELECT, by name.
    """
    value, each = outputs.__getitem__, [rule for rule in entry.rules if rule.columns]
    if not entry.rules:
        return {}
    rows = [rule for rule in each if rule.type in rules.ROW_RULES]
    return {
        FAILED: _positions([(rule, fails(rule, value)) for rule in rows]),
        COUNTED: _positions([(rule, counts(rule, value)) for rule in each]),
    }


def _positions(marked: list[tuple[BatchRule, Column]]) -> Column:
    each = [sf.when(mark, sf.lit(rule.position)) for rule, mark in marked]
    return sf.array_compact(sf.array(*each).cast("array<int>"))


def fails(rule: BatchRule, value: Values) -> Column:
    """Whether a row fails an expectation about single rows; never NULL."""
    failed = counts(rule, value) & ~_holds(rule, value)
    return sf.coalesce(failed, sf.lit(False))  # noqa: FBT003


def counts(rule: BatchRule, value: Values) -> Column:
    """Whether a row counts among those that ``mostly`` is a share of; never NULL."""
    missing = [value(name).isNull() for name in rule.columns]
    if rule.type in (rules.NOT_NULL, rules.NULL):
        return sf.lit(True)  # noqa: FBT003
    match rule.kwargs.get("ignore_row_if"):
        case "either_value_is_missing" | "any_value_is_missing":
            return ~reduce(or_, missing)
        case "neither" | "never":
            return sf.lit(True)  # noqa: FBT003
        case _:
            # Rows without any of the values.
            return ~reduce(and_, missing)


def _holds(rule: BatchRule, value: Values) -> Column:
    kwargs, column = rule.kwargs, value(rule.columns[0])
    match rule.type:
        case rules.NOT_NULL:
            return column.isNotNull()
        case rules.NULL:
            return column.isNull()
        case rules.IN_SET:
            return column.isin(kwargs["value_set"])
        case rules.NOT_IN_SET:
            return ~column.isin(kwargs["value_set"])
        case rules.BETWEEN:
            return _between(column, kwargs)
        case rules.GREATER:
            other = value(rule.columns[1])
            # A NULL makes neither side greater, so the row passes.
            return column >= other if kwargs.get("or_equal") else column > other
        case rules.EQUAL:
            return column.eqNullSafe(value(rule.columns[1]))
        case _:
            return _text_holds(rule, column)


def _text_holds(rule: BatchRule, column: Column) -> Column:
    kwargs = rule.kwargs
    match rule.type:
        case rules.LENGTHS_BETWEEN:
            return _between(sf.length(column), kwargs)
        case rules.LENGTHS_EQUAL:
            return sf.length(column) == sf.lit(kwargs["value"])
        case rules.REGEX:
            return column.rlike(kwargs["regex"])
        case rules.NOT_REGEX:
            return ~column.rlike(kwargs["regex"])
        case rules.REGEX_LIST if kwargs.get("match_on", "any") == "all":
            return reduce(and_, [column.rlike(one) for one in kwargs["regex_list"]])
        case rules.REGEX_LIST:
            return column.rlike("|".join(kwargs["regex_list"]))
        case rules.NOT_REGEX_LIST:
            return reduce(and_, [~column.rlike(one) for one in kwargs["regex_list"]])
        case _:
            raise AssertionError(rule.type)


def _between(column: Column, kwargs: Mapping[str, Any]) -> Column:
    found: list[Column] = []
    if (least := kwargs.get("min_value")) is not None:
        found.append(column > least if kwargs.get("strict_min") else column >= least)
    if (most := kwargs.get("max_value")) is not None:
        found.append(column < most if kwargs.get("strict_max") else column <= most)
    return reduce(and_, found)
