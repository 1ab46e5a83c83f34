"""Definitions of streaming queries: a query must be restarted if its definition changes."""

from __future__ import annotations

import json
from typing import Any

from spark_jobs.graph.manifest import SilverEntry, SourceEntry

# Attributes that do not affect the processing of records.
_FOR_PEOPLE = {"description", "owner", "tags", "file"}
_COLUMN_FOR_PEOPLE = {"description", "pii"}
# Attributes of the text; its meaning is in the projection, and in the rules.
_OF_THE_TEXT = {"sql", "fingerprint", "suite"}


def silver_definition(source: SourceEntry, entry: SilverEntry) -> str:
    """The definition of a silver query, from its source and table.

    Returns:
        JSON text; equal for definitions that need no restart.
    """
    read = _plain(source.model_dump(mode="json"), _FOR_PEOPLE)
    made = _plain(entry.model_dump(mode="json"), _FOR_PEOPLE | _OF_THE_TEXT)
    if rules := entry.rules:
        made["rules"] = [[rule.type, dict(rule.kwargs), rule.severity] for rule in rules]
    else:
        del made["on_failure"]
    return json.dumps({"source": read, "table": made}, sort_keys=True)


def _plain(entry: dict[str, Any], without: set[str]) -> dict[str, Any]:
    kept = {key: value for key, value in entry.items() if key not in without}
    kept["columns"] = [
        {key: value for key, value in column.items() if key not in _COLUMN_FOR_PEOPLE}
        for column in entry["columns"]
    ]
    return kept
