"""What publishing commits, as SQL over the result of a refresh; text only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.graph.dialect import to_sql
from spark_jobs.graph.last_step import DeleteInsert, LastStep, MergeByKey, Overwrite
from spark_jobs.graph.maintenance.relation import WEIGHT
from spark_jobs.graph.manifest import GoldEntry
from spark_jobs.graph.sql import delta_relation
from spark_jobs.storage import log
from spark_jobs.storage.columns import quoted
from spark_jobs.storage.delta import FLAG
from spark_jobs.storage.layout import partition_columns
from spark_jobs.storage.merge_sql import merge_sql

# The view with the result of a refresh: the rows, or their change.
RESULT = "__refresh_result"


@dataclass(frozen=True)
class Publish:
    """The last step of a refresh as SQL.

    Attributes:
        step: the last step.
        comment: what it does, in one line.
        sql: one statement over the view ``RESULT``; None if no row changes.
    """

    step: LastStep
    comment: str
    sql: str | None

    @property
    def text(self) -> str:
        """As comments, so that a script with it still writes no table."""
        lines = [
            "publish: one commit, shown as comments because this script writes no table",
            self.comment,
            *([] if self.sql is None else f"{self.sql};".splitlines()),
        ]
        return "\n".join(f"-- {line}" for line in lines)

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object: ``step``, ``key`` (None unless merged by key), ``comment``, ``sql``."""
        key = list(self.step.key) if isinstance(self.step, MergeByKey) else None
        return {
            "step": _word(self.step),
            "key": key,
            "comment": self.comment,
            "sql": self.sql,
        }


def publish_sql(
    context: GoldContext, entry: GoldEntry, step: LastStep, *, base: int | None, empty: bool = False
) -> Publish:
    """The last step of a refresh.

    Args:
        context: gives the published table's location.
        entry: the view.
        step: the last step.
        base: version of the published table; None if nothing is published.
        empty: whether it is known that no row changes.
    """
    if empty:
        return Publish(step, "no row changes: a commit without files moves the watermark", None)
    location = context.published_at(entry.name)
    columns = [one.name for one in log.schema(location, base)] if base is not None else []
    table = to_sql(delta_relation(location))
    match step:
        case MergeByKey(key=key):
            comment = f"merge by key: a row to delete is found by {', '.join(key)}"
            source = _keyed(columns)
        case DeleteInsert():
            comment = "delete and insert: all copies of a row are deleted, the remaining inserted"
            source = _unkeyed(columns, to_sql(delta_relation(location, base)))
        case Overwrite():
            return _overwrite(entry, table, location)
        case _:
            assert_never(step)
    return Publish(step, comment, merge_sql(table, source, columns=columns, step=step))


def _word(step: LastStep) -> str:
    match step:
        case MergeByKey():
            return "merge"
        case DeleteInsert():
            return "delete+insert"
        case Overwrite():
            return "overwrite"
        case _:
            assert_never(step)


def _keyed(columns: Sequence[str]) -> str:
    return f"(\n  SELECT {_names(columns)}, {WEIGHT} < 0 AS {FLAG}\n  FROM {RESULT}\n)"


def _unkeyed(columns: Sequence[str], published: str) -> str:
    names, of_result = _names(columns), _names(columns, "r.")
    same = " AND ".join(f"p.{quoted(one)} <=> r.{quoted(one)}" for one in columns)
    return (
        f"(\n  SELECT {names}, TRUE AS {FLAG}\n"
        f"  FROM {RESULT}\n  WHERE {WEIGHT} < 0\n"
        f"  UNION ALL\n  SELECT {names}, FALSE AS {FLAG}\n  FROM (\n"
        f"    SELECT {names}, {WEIGHT} AS __copies\n"
        f"    FROM {RESULT}\n    WHERE {WEIGHT} > 0\n"
        f"    UNION ALL\n    SELECT {of_result}, COUNT(*) + r.{WEIGHT} AS __copies\n"
        f"    FROM {RESULT} AS r\n    JOIN {published} AS p\n      ON {same}\n"
        f"    WHERE r.{WEIGHT} < 0\n    GROUP BY {of_result}, r.{WEIGHT}\n"
        "  ) AS remaining\n"
        "  LATERAL VIEW EXPLODE(ARRAY_REPEAT(1, CAST(__copies AS INT))) e AS __copy\n)"
    )


def _overwrite(entry: GoldEntry, table: str, location: str) -> Publish:
    exists = log.table_version(location) is not None
    held = {one.name: one.type for one in log.schema(location)} if exists else {}
    fits = list(held.items()) == [(one.name, one.type) for one in entry.columns]
    if fits and partition_columns(location) == entry.partition_by:
        comment = "overwrite; if few rows differ, delete and insert those alone"
        sql = f"INSERT OVERWRITE {table}\nSELECT {_names(list(held))}"
        return Publish(Overwrite(), comment, f"{sql}\nFROM {RESULT}")
    partitions = f"\nPARTITIONED BY ({_names(entry.partition_by)})" if entry.partition_by else ""
    comment = "overwrite: the table is new, or has other columns or partitions"
    sql = f"CREATE OR REPLACE TABLE {table}\nUSING DELTA{partitions}\nAS SELECT * FROM {RESULT}"
    return Publish(Overwrite(), comment, sql)


def _names(columns: Sequence[str], prefix: str = "") -> str:
    return ", ".join(f"{prefix}{quoted(one)}" for one in columns)
