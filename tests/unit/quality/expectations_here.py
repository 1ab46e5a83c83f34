"""Rows, and expectations about them with what is to be said: TRUE, FALSE, or nothing (None)."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa

ROWS = pa.table(
    {
        "id": [1, 2, 3],
        "name": ["ann", "bob", None],
        "twice": ["x", "x", None],
        "amount": pa.array([Decimal("1.50"), Decimal("2.00"), None], pa.decimal128(12, 2)),
        "more": [1, 3, 4],
        "ratio": [0.5, float("nan"), 1.0],
        "zero": [0.0, -0.0, 1.0],
        "parts": [[0.0], [-0.0], [1.0]],
    }
)
_BETWEEN = "column_values_to_be_between"
_GREATER = "column_pair_values_a_to_be_greater_than_b"
CASES = [
    ("column_values_to_not_be_null", {"column": "id"}, True),
    ("column_values_to_not_be_null", {"column": "name"}, False),
    ("column_values_to_not_be_null", {"column": "name", "mostly": 0.5}, None),
    ("column_values_to_not_be_null", {"column": "other"}, None),
    ("column_values_to_be_unique", {"column": "name"}, True),
    ("column_values_to_be_unique", {"column": "twice"}, False),
    # As Spark groups: a zero has no sign.
    ("column_values_to_be_unique", {"column": "zero"}, False),
    ("column_values_to_be_unique", {"column": "ratio"}, True),
    ("column_values_to_be_unique", {"column": "parts"}, None),
    ("compound_columns_to_be_unique", {"column_list": ["zero", "twice"]}, None),
    ("compound_columns_to_be_unique", {"column_list": ["id", "more"]}, True),
    ("compound_columns_to_be_unique", {"column_list": ["id", "twice"]}, None),
    (_BETWEEN, {"column": "amount", "min_value": 1.5}, True),
    (_BETWEEN, {"column": "amount", "min_value": 0, "max_value": 1.99}, False),
    (_BETWEEN, {"column": "ratio", "min_value": 0}, None),
    (_BETWEEN, {"column": "name", "min_value": 0}, None),
    (_BETWEEN, {"column": "id", "min_value": 0, "strict_min": True}, None),
    (_GREATER, {"column_A": "more", "column_B": "id", "or_equal": True}, True),
    (_GREATER, {"column_A": "more", "column_B": "id"}, False),
    (_GREATER, {"column_A": "id", "column_B": "amount"}, None),
    ("column_values_to_be_in_set", {"column": "name", "value_set": ["ann", "bob"]}, True),
    ("column_values_to_be_in_set", {"column": "name", "value_set": ["ann"]}, False),
    ("column_values_to_be_in_set", {"column": "id", "value_set": [1, 2, 3]}, None),
    ("column_value_lengths_to_equal", {"column": "name", "value": 3}, True),
    ("column_value_lengths_to_equal", {"column": "name", "value": 2}, False),
    ("column_value_lengths_to_be_between", {"column": "name", "min_value": 1}, True),
    ("column_value_lengths_to_be_between", {"column": "name", "min_value": 4}, False),
    ("column_value_lengths_to_be_between", {"column": "name", "max_value": 2}, False),
    ("column_values_to_match_regex", {"column": "name", "regex": "^[a-z]+$"}, True),
    ("column_values_to_match_regex", {"column": "name", "regex": "^a"}, False),
    ("column_values_to_match_regex", {"column": "name", "regex": r"^\w+$"}, None),
    # Python cannot read this one; Java can.
    ("column_values_to_match_regex", {"column": "name", "regex": "^a{1}{1}"}, None),
    ("table_row_count_to_be_between", {"min_value": 3, "max_value": 3}, True),
    ("table_row_count_to_be_between", {"min_value": 4}, False),
    ("column_mean_to_be_between", {"column": "id", "min_value": 1}, None),
]
