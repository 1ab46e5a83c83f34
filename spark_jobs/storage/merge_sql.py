"""The MERGE that deletes and inserts rows in one commit; text only."""

from __future__ import annotations

from collections.abc import Sequence

from spark_jobs.graph.last_step import RowStep, matched_columns
from spark_jobs.storage.columns import quoted
from spark_jobs.storage.delta import FLAG


def merge_sql(target: str, source: str, *, columns: Sequence[str], step: RowStep) -> str:
    """A MERGE that deletes the source rows with a flag, and inserts the others.

    Args:
        target: the table, as SQL.
        source: the columns and the flag, as SQL; each row to delete once.
        columns: all columns of the table.
        step: how a row to delete is found in the table.
    """
    matched = matched_columns(step, columns)
    same = "\n  ".join(f"AND t.{quoted(one)} <=> s.{quoted(one)}" for one in matched)
    names = ", ".join(map(quoted, columns))
    values = ", ".join(f"s.{quoted(one)}" for one in columns)
    return (
        f"MERGE INTO {target} AS t\nUSING {source} AS s\nON s.{FLAG}\n  {same}\n"
        "WHEN MATCHED THEN DELETE\n"
        f"WHEN NOT MATCHED AND NOT s.{FLAG} THEN INSERT ({names})\n  VALUES ({values})"
    )
