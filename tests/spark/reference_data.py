"""Compiles the lists of what Spark and Great Expectations know, from the pinned versions."""

from __future__ import annotations

import os
from typing import Any


def expectation_types() -> dict[str, dict[str, list[str]]]:
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    from great_expectations.expectations import core
    from great_expectations.expectations.expectation import Expectation

    # Fields of every expectation that are not arguments of the check.
    outer = set(Expectation.__fields__) - {"row_condition", "condition_parser"}
    found: dict[str, dict[str, list[str]]] = {}
    for name in dir(core):
        kind: Any = getattr(core, name)
        if not (isinstance(kind, type) and issubclass(kind, Expectation)):
            continue
        own = {key: one for key, one in kind.__fields__.items() if key not in outer}
        found[kind.expectation_type] = {
            "arguments": sorted(own),
            "required": sorted(key for key, one in own.items() if one.required),
        }
    return dict(sorted(found.items()))
