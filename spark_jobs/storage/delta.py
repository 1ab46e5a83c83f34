"""What all that reads or writes Delta tables shares: identities of writes, properties, words."""

from __future__ import annotations

from dataclasses import dataclass

# The column that tells rows to delete from rows to insert.
FLAG = "__leaves"
# The column of Delta's change feed that says what became of a row.
CHANGE_TYPE = "_change_type"
# Its values for rows that came; with the others a row went.
CAME = ("insert", "update_postimage")

CHANGE_FEED = {"delta.enableChangeDataFeed": "true"}
# For a table that refreshes commit to: whoever opens it reads every commit since the last time the
# log was condensed, 40 ms for a hundred of them, and delta-rs condenses every hundred by default.
SHORT_LOG = {"delta.checkpointInterval": "10"}


@dataclass(frozen=True)
class Txn:
    """A write's identity: Delta commits each pair once, and skips a repeat silently.

    A version that is lower than or equal to the last committed one is skipped too, so versions of
    one app id only grow.
    """

    app_id: str
    version: int
