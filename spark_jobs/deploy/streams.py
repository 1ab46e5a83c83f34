"""What a streaming query runs as: it must be restarted exactly where this differs."""

from __future__ import annotations

import json
from typing import Any

from spark_jobs.graph.manifest import SilverEntry, SourceEntry

# What is for people; no record is handled otherwise for it.
_FOR_PEOPLE = {"description", "owner", "tags", "file"}
_COLUMN_FOR_PEOPLE = {"description", "pii"}
# A fingerprint covers the text; what it does is in the projection.
_OF_THE_TEXT = {"sql", "fingerprint", "suite"}


def silver_definition(source: SourceEntry, entry: SilverEntry) -> str:
    """What a silver query runs as: how its source is read, and what is made of it.

    Returns:
        a text that two definitions share where no restart is needed.
    """
    read = _plain(source.model_dump(mode="json"), _FOR_PEOPLE)
    made = _plain(entry.model_dump(mode="json"), _FOR_PEOPLE | _OF_THE_TEXT)
    return json.dumps({"source": read, "table": made}, sort_keys=True)


def _plain(entry: dict[str, Any], without: set[str]) -> dict[str, Any]:
    kept = {key: value for key, value in entry.items() if key not in without}
    kept["columns"] = [
        {key: value for key, value in column.items() if key not in _COLUMN_FOR_PEOPLE}
        for column in entry["columns"]
    ]
    return kept
