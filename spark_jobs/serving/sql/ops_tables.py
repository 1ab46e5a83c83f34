"""The tables of ``ops``: status and quarantine for SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from spark_jobs.graph.manifest import Column
from spark_jobs.names import OPS_SCHEMA
from spark_jobs.serving.report.table_graph import edges

if TYPE_CHECKING:
    from spark_jobs.serving.project import OpenProject
    from spark_jobs.state.attempts import RefreshAttempt

Row = Mapping[str, Any]

# The ledger may have millions of attempts; queries read only the newest.
NEWEST_ATTEMPTS: Final = 10_000

_ARROW: Final = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", "UTC"),
}


@dataclass(frozen=True)
class OpsTable:
    """A table that is computed from the control state when a query reads it.

    Attributes:
        name: its name in SQL.
        columns: columns with Spark SQL types.
        rows: computes the rows, given the project and the current time.
    """

    name: str
    description: str
    columns: tuple[Column, ...]
    rows: Callable[[OpenProject, datetime], Iterator[Row]]

    def read(self, project: OpenProject, *, now: datetime) -> pa.Table:
        """The current rows, with the columns that the table declares."""
        schema = pa.schema([(column.name, _ARROW[column.type]) for column in self.columns])
        return pa.Table.from_pylist(list(self.rows(project, now)), schema)


def _freshness(project: OpenProject, now: datetime) -> Iterator[Row]:
    from spark_jobs.gold.base.context import GoldContext
    from spark_jobs.gold.base.freshness import view_status

    context = GoldContext(project.settings, project.manifest, project.store)
    for name, entry in sorted(project.manifest.gold.items()):
        one = view_status(context, name, now=now)
        behind, target = one.behind, one.target
        yield {
            "table_name": str(entry.table_name),
            "owner": entry.owner,
            "refresh": one.policy.value,
            "freshness": one.freshness.value,
            "complete_until": None if behind is None else now - behind,
            "behind_seconds": None if behind is None else behind.total_seconds(),
            "target_seconds": None if target is None else target.total_seconds(),
            "published_at": one.published_at,
            "published_version": one.published_version,
            "rule": one.rule,
            "verdict": None if one.verdict is None else one.verdict["outcome"],
            "blocked": one.blocked,
            "pinned": one.pinned is not None,
            "held": one.blocked or one.pinned is not None,
            "last_status": one.last and one.last.status.value,
            "last_reason": one.last and one.last.reason,
        }


def _refreshes(project: OpenProject, _: datetime) -> Iterator[Row]:
    from spark_jobs.graph.personal import reads_personal, without_values

    views = project.manifest.gold.values()
    shown = {one.name for one in views if not reads_personal(project.manifest, one)}
    for one in project.store.attempts(limit=NEWEST_ATTEMPTS):
        actual = one.actual or {}
        seconds = actual.get("seconds")
        yield {
            **_attempt(one),
            "tick": one.tick,
            "status": one.status.value,
            "decision": one.decision,
            "rule": one.rule,
            "reason_code": one.reason_code,
            "reason": one.reason,
            "started_at": one.started_at,
            "updated_at": one.updated_at,
            "seconds": sum(seconds.values()) if seconds else None,
            "rows": actual.get("rows"),
            "published_version": one.published_version,
            "error": one.error if one.view in shown else without_values(one.error or "") or None,
        }


def _verdicts(project: OpenProject, _: datetime) -> Iterator[Row]:
    from spark_jobs.quality.verdict import Verdict

    for one in project.store.attempts(limit=NEWEST_ATTEMPTS):
        if one.verdict is None:
            continue
        verdict = Verdict.from_dict(one.verdict)
        for result in verdict.results:
            yield {
                **_attempt(one),
                "at": one.updated_at,
                "outcome": verdict.outcome.value,
                "expectation": result.type,
                "column_name": result.column,
                "severity": result.severity.value,
                "success": result.success,
                "unexpected_count": result.unexpected_count,
                "observed": None if result.observed is None else str(result.observed),
                "message": result.message,
            }


def _lineage(project: OpenProject, _: datetime) -> Iterator[Row]:
    direct: dict[str, set[str]] = {}
    for read, reader in edges(project.manifest):
        direct.setdefault(reader, set()).add(read)
    for table in sorted(direct):
        seen: set[str] = set()
        steps, next_ones = 1, direct[table]
        while next_ones:
            for name in sorted(next_ones):
                yield {"table_name": table, "reads": name, "steps": steps}
            seen |= next_ones
            further = (direct.get(name, set()) for name in next_ones)
            steps, next_ones = steps + 1, set().union(*further) - seen


def _quarantine(project: OpenProject, _: datetime) -> Iterator[Row]:
    from spark_jobs.silver.check.quarantine import rejections
    from spark_jobs.storage.lake import Lake

    lake = Lake(project.settings.lake)
    for name, entry in sorted(project.manifest.silver.items()):
        for one in rejections(name, lake.quarantine(name)):
            yield {
                "table_name": str(entry.table_name),
                "reason": one.reason,
                "records": one.records,
                "latest_arrival": one.latest_arrival,
            }


def _attempt(attempt: RefreshAttempt) -> Row:
    return {"attempt_id": attempt.attempt_id, "table_name": f"gold.{attempt.view}"}


def _columns(*described: tuple[str, str, str]) -> tuple[Column, ...]:
    return tuple(Column(name=name, type=kind, description=text) for name, kind, text in described)


_OF_ATTEMPT = (
    ("attempt_id", "string", "The attempt, as the ledger and the commit name it."),
    ("table_name", "string", "The gold table, for instance gold.daily_orders."),
)

OPS_TABLES: Final = {
    table.name: table
    for table in (
        OpsTable(
            f"{OPS_SCHEMA}.freshness",
            "The current state of each gold table.",
            _columns(
                _OF_ATTEMPT[1],
                ("owner", "string", "Its owner, as declared."),
                ("refresh", "string", "continuous, micro-batch or bulk."),
                ("freshness", "string", "current, behind, late or unpublished."),
                (
                    "complete_until",
                    "timestamp",
                    "It contains all changes of its inputs until then.",
                ),
                ("behind_seconds", "double", "The age of the oldest change that is missing in it."),
                ("target_seconds", "double", "The freshness that the view declares."),
                ("published_at", "timestamp", "When it was last published."),
                ("published_version", "bigint", "The Delta version of that commit."),
                ("rule", "string", "How that content was computed."),
                ("verdict", "string", "Verdict of the newest audit: passed, warned or blocked."),
                ("blocked", "boolean", "Whether the gate blocked the newest result."),
                ("pinned", "boolean", "Whether a rollback pinned it to an earlier version."),
                ("held", "boolean", "Deprecated: blocked or pinned."),
                ("last_status", "string", "The status of the newest attempt."),
                ("last_reason", "string", "Why the newest attempt did that."),
            ),
            _freshness,
        ),
        OpsTable(
            f"{OPS_SCHEMA}.refreshes",
            f"The newest {NEWEST_ATTEMPTS:,} attempts to refresh a gold table.",
            _columns(
                *_OF_ATTEMPT,
                ("tick", "string", "The tick whose input versions it read."),
                ("status", "string", "Its status: published, skipped, blocked, failed, ..."),
                ("decision", "string", "skip, full, incremental, range, rollback or promotion."),
                ("rule", "string", "The maintenance strategy of an incremental refresh."),
                ("reason_code", "string", "Why, for programs."),
                ("reason", "string", "Why, for people."),
                ("started_at", "timestamp", "When it began."),
                ("updated_at", "timestamp", "When it ended, or last reported."),
                ("seconds", "double", "The time of all its steps."),
                ("rows", "bigint", "The rows that it staged."),
                ("published_version", "bigint", "The Delta version that it published."),
                ("error", "string", "Why it failed."),
            ),
            _refreshes,
        ),
        OpsTable(
            f"{OPS_SCHEMA}.verdicts",
            "The result of each expectation in the audits of those attempts.",
            _columns(
                *_OF_ATTEMPT,
                ("at", "timestamp", "When the attempt last reported."),
                ("outcome", "string", "Verdict of the whole audit: passed, warned or blocked."),
                ("expectation", "string", "The expectation's type."),
                ("column_name", "string", "The column; NULL for a rule about the table."),
                ("severity", "string", "critical, warning or info."),
                ("success", "boolean", "Whether it passed."),
                ("unexpected_count", "bigint", "Number of values or rows that break it."),
                ("observed", "string", "The observed value of a rule about an aggregate."),
                ("message", "string", "One line for people."),
            ),
            _verdicts,
        ),
        OpsTable(
            f"{OPS_SCHEMA}.lineage",
            "Which tables each table depends on, directly and through others.",
            _columns(
                ("table_name", "string", "A silver or gold table."),
                ("reads", "string", "A table that it depends on."),
                ("steps", "bigint", "1 where its SQL reads that table, more through others."),
            ),
            _lineage,
        ),
        OpsTable(
            f"{OPS_SCHEMA}.quarantine",
            "Rejected records by table and reason, without their content.",
            _columns(
                ("table_name", "string", "The silver table that rejected them."),
                ("reason", "string", "The reason code."),
                ("records", "bigint", "Number of records."),
                ("latest_arrival", "timestamp", "When the latest of them arrived in bronze."),
            ),
            _quarantine,
        ),
    )
}
