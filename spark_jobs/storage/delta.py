"""Shared by all readers and writers of Delta tables: write identities, properties, columns."""

from __future__ import annotations

from dataclasses import dataclass

# The column that marks the rows to delete among the source rows of a merge.
FLAG = "__leaves"
# The column of Delta's change feed with the kind of change.
CHANGE_TYPE = "_change_type"
# Its values for inserted rows; all others mark deleted rows.
CAME = ("insert", "update_postimage")

CHANGE_FEED = {"delta.enableChangeDataFeed": "true"}
# For tables that refreshes commit to: opening a table reads all commits since the last log
# checkpoint, 40 ms for a hundred, and delta-rs writes one only every hundred by default.
SHORT_LOG = {"delta.checkpointInterval": "10"}


@dataclass(frozen=True)
class Txn:
    """Identity of a write: Delta commits each pair once, and skips a repeat silently.

    Versions of an app id must grow: Delta also skips a version below the last committed one.
    """

    app_id: str
    version: int
