"""The expectations that can judge a batch of a silver table.

A batch is judged while it is applied, by an expression per expectation, with the meaning that it
has in Great Expectations.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from spark_jobs.definitions.vocabulary import OnFailure, Severity

NOT_NULL: Final = "expect_column_values_to_not_be_null"
NULL: Final = "expect_column_values_to_be_null"
IN_SET: Final = "expect_column_values_to_be_in_set"
NOT_IN_SET: Final = "expect_column_values_to_not_be_in_set"
BETWEEN: Final = "expect_column_values_to_be_between"
LENGTHS_BETWEEN: Final = "expect_column_value_lengths_to_be_between"
LENGTHS_EQUAL: Final = "expect_column_value_lengths_to_equal"
REGEX: Final = "expect_column_values_to_match_regex"
NOT_REGEX: Final = "expect_column_values_to_not_match_regex"
REGEX_LIST: Final = "expect_column_values_to_match_regex_list"
NOT_REGEX_LIST: Final = "expect_column_values_to_not_match_regex_list"
GREATER: Final = "expect_column_pair_values_a_to_be_greater_than_b"
EQUAL: Final = "expect_column_pair_values_to_be_equal"
UNIQUE: Final = "expect_column_values_to_be_unique"
UNIQUE_TOGETHER: Final = "expect_compound_columns_to_be_unique"
ROW_COUNT_BETWEEN: Final = "expect_table_row_count_to_be_between"
ROW_COUNT_EQUAL: Final = "expect_table_row_count_to_equal"

_BOUNDS: Final = ("min_value", "max_value", "strict_min", "strict_max")
_PAIR: Final = ("column_A", "column_B", "ignore_row_if")
# Each row passes or fails by itself. The values are the supported arguments.
ROW_RULES: Final[Mapping[str, tuple[str, ...]]] = {
    NOT_NULL: ("column", "mostly"),
    NULL: ("column", "mostly"),
    IN_SET: ("column", "value_set", "mostly"),
    NOT_IN_SET: ("column", "value_set", "mostly"),
    BETWEEN: ("column", *_BOUNDS, "mostly"),
    LENGTHS_BETWEEN: ("column", *_BOUNDS, "mostly"),
    LENGTHS_EQUAL: ("column", "value", "mostly"),
    REGEX: ("column", "regex", "mostly"),
    NOT_REGEX: ("column", "regex", "mostly"),
    REGEX_LIST: ("column", "regex_list", "match_on", "mostly"),
    NOT_REGEX_LIST: ("column", "regex_list", "mostly"),
    GREATER: (*_PAIR, "or_equal", "mostly"),
    EQUAL: (*_PAIR, "mostly"),
}
# Only a batch as a whole passes or fails.
BATCH_RULES: Final[Mapping[str, tuple[str, ...]]] = {
    UNIQUE: ("column", "mostly"),
    UNIQUE_TOGETHER: ("column_list", "ignore_row_if", "mostly"),
    ROW_COUNT_BETWEEN: _BOUNDS,
    ROW_COUNT_EQUAL: ("value",),
}
RULES: Final = {**ROW_RULES, **BATCH_RULES}
PAIR_RULES: Final = frozenset({GREATER, EQUAL})
UNIQUE_RULES: Final = frozenset({UNIQUE, UNIQUE_TOGETHER})


@dataclass(frozen=True)
class BatchRule:
    """An expectation of a silver table's suite.

    Attributes:
        position: in the suite, from 0.
        type: its name in Great Expectations, one of ``RULES``.
        kwargs: its arguments as written.
    """

    position: int
    type: str
    kwargs: Mapping[str, Any]
    severity: Severity

    @property
    def columns(self) -> tuple[str, ...]:
        """Its columns; empty for a rule about the row count."""
        named = [self.kwargs.get(key) for key in ("column", "column_A", "column_B")]
        listed = self.kwargs.get("column_list") or ()
        return (*(str(one) for one in named if one is not None), *map(str, listed))

    @property
    def name(self) -> str:
        """The rule and its columns, as quarantine shows it."""
        return f"{self.type}({', '.join(self.columns)})" if self.columns else self.type

    @property
    def mostly(self) -> float:
        """The share of rows that must pass."""
        return float(self.kwargs.get("mostly", 1))

    @property
    def critical(self) -> bool:
        """Whether its failure has the effect of ``on_failure``; otherwise it only warns."""
        return self.severity is Severity.CRITICAL

    @property
    def of_rows(self) -> bool:
        """Whether each row passes or fails by itself."""
        return self.type in ROW_RULES and self.mostly >= 1


def rules_digest(rules: Iterable[BatchRule], on_failure: OnFailure) -> str:
    """A text that is equal for equal rules and reactions; notes are ignored."""
    told = [[rule.type, dict(rule.kwargs), rule.severity] for rule in rules]
    text = json.dumps([told, on_failure], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def batch_rules(suite: Mapping[str, Any] | None) -> tuple[BatchRule, ...]:
    """The rules of a suite that ``validate`` accepted; () without a suite.

    Args:
        suite: in Great Expectations' format; None if the table has none.

    >>> [rule] = batch_rules({"expectations": [{"type": NOT_NULL, "kwargs": {"column": "a"}}]})
    >>> rule.name, rule.of_rows, rule.critical
    ('expect_column_values_to_not_be_null(a)', True, True)
    """
    return tuple(
        BatchRule(
            at,
            str(one["type"]),
            one.get("kwargs") or {},
            Severity(one.get("severity", Severity.CRITICAL)),
        )
        for at, one in enumerate((suite or {}).get("expectations") or ())
    )
