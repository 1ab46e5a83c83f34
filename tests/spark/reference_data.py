"""Compiles the lists of what Spark and Great Expectations know, from the pinned versions."""

from __future__ import annotations

import os
from typing import Any


def expectation_types() -> dict[str, dict[str, list[str]]]:
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    from great_expectations.expectations import core
    from great_expectations.expectations.expectation import Expectation

    # Fields of every expectation that are not arguments of the check.
    outer = {*Expectation.__fields__, "batch_id"} - {"row_condition", "condition_parser"}
    found: dict[str, dict[str, list[str]]] = {}
    for name in dir(core):
        kind: Any = getattr(core, name)
        if not (isinstance(kind, type) and issubclass(kind, Expectation)):
            continue
        if not kind.expectation_type:
            continue  # without a type, no suite can name it: ExpectMulticolumnValuesToBeUnique
        own = {key: one for key, one in kind.__fields__.items() if key not in outer}
        found[kind.expectation_type] = {
            "arguments": sorted(own),
            "required": sorted(key for key, one in own.items() if one.required),
        }
    return dict(sorted(found.items()))


def spark_functions(spark: Any) -> dict[str, str]:
    """Every built-in function and whether it is "scalar", "aggregate", "window" or "generator"."""
    names = [row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()]
    found: dict[str, str] = {}
    for name in names:
        if not name.isidentifier():
            continue  # an operator
        lines = [row[0] for row in spark.sql(f"DESCRIBE FUNCTION `{name}`").collect()]
        found[name] = _kind(next((one for one in lines if one.startswith("Class:")), ""))
    return dict(sorted(found.items()))


def _kind(class_line: str) -> str:
    if ".aggregate." in class_line:
        return "aggregate"
    if any(word in class_line for word in _WINDOW_CLASSES):
        return "window"
    return "scalar"


_WINDOW_CLASSES = ("RowNumber", "Rank", "CumeDist", "NTile", ".Lag", ".Lead", "NthValue")
