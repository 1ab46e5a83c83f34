"""Explains the next refresh of a view: decision, reason, strategy, inputs, estimates, engine.

Reads Delta logs and Parquet footers; writes nothing and starts no Spark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spark_jobs.definitions.deprecation import Deprecation
from spark_jobs.definitions.vocabulary import Strategy
from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.base.publications import Publication, latest_publication
from spark_jobs.gold.engine.choice import spark_because
from spark_jobs.gold.refresh.observe import estimate
from spark_jobs.graph.maintenance.state_columns import state_columns
from spark_jobs.graph.manifest import GoldEntry, Maintenance, MaintenanceStrategy
from spark_jobs.graph.obstacle_place import obstacle_place
from spark_jobs.names import TableName, TableVersion
from spark_jobs.planning.changes import ChangeKind, InputChange
from spark_jobs.planning.plan import Estimate, RefreshPlan
from spark_jobs.storage import log
from spark_jobs.storage.log import TableSize

# Shown to users; JSON output has the strategy's own name.
_STRATEGIES = {
    MaintenanceStrategy.ROW_DELTAS: "row deltas",
    MaintenanceStrategy.AFFECTED_GROUP_RECOMPUTE: "affected-group recompute",
    MaintenanceStrategy.AGGREGATE_STATE: "aggregate state: changes are added to it",
    MaintenanceStrategy.FULL: "full",
}
_NOBODY = Maintenance(
    rule=MaintenanceStrategy.FULL, detail="no maintenance strategy was derived for the view"
)


@dataclass(frozen=True)
class AggregateState:
    """Counts and sums beside a view.

    Attributes:
        name: its name in the SQL of a refresh.
        columns: pairs of a column and the expression that it counts or sums.
        version: the version that belongs to the publication; None before the first.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    version: TableVersion | None

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object: ``name``, ``columns`` (expression by column) and ``version``."""
        version = None if self.version is None else self.version.version
        return {"name": self.name, "columns": dict(self.columns), "version": version}


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """A plan with the facts behind it.

    Attributes:
        published: version and size of the published table; None before the first publication.
        states: the view's aggregate state, in the order of computation.
        incremental: changed rows and their approximate bytes; None if the logs have no
            counts, or if the view has no maintenance strategy.
        full: all rows of all inputs; None if an input is missing.
        place: location of the obstacle, as ``file:line:column``; None if there is none.
        engine: the engine, and the reason if that is Spark.
    """

    plan: RefreshPlan
    entry: GoldEntry
    published: tuple[int, TableSize] | None
    states: tuple[AggregateState, ...]
    incremental: Estimate | None
    full: Estimate | None
    place: str | None
    engine: str

    @property
    def maintenance(self) -> Maintenance:
        return self.entry.maintenance or _NOBODY

    @property
    def deprecated(self) -> list[tuple[str, Deprecation]]:
        """The view's columns that will be removed, each as name and deprecation."""
        return [(one.name, one.deprecation) for one in self.entry.columns if one.deprecation]

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object.

        Returns:
            the keys of ``RefreshPlan.as_dict``; and ``strategy``, ``maintenance`` (with ``place``),
                ``engine``, ``kept_groups`` (the aggregate state), ``deprecated`` (text by column),
                ``published`` (``version``, ``rows``, ``bytes``; or None) and ``estimates``
                (``incremental`` and ``full``, each from ``Estimate.as_dict``; or None).
        """
        published = None
        if self.published is not None:
            version, size = self.published
            published = {"version": version, "rows": size.rows, "bytes": size.bytes}
        return {
            **self.plan.as_dict(),
            "strategy": self.entry.strategy.value,
            "maintenance": {**self.maintenance.model_dump(mode="json"), "place": self.place},
            "engine": self.engine,
            "kept_groups": [one.as_dict() for one in self.states],
            "deprecated": {name: gone.notice for name, gone in self.deprecated},
            "published": published,
            "estimates": {
                "incremental": None if self.incremental is None else self.incremental.as_dict(),
                "full": None if self.full is None else self.full.as_dict(),
            },
        }


def strategy_words(entry: GoldEntry) -> str:
    """The maintenance strategy as text for users."""
    rule = MaintenanceStrategy.FULL if entry.maintenance is None else entry.maintenance.rule
    if entry.strategy is not Strategy.FULL:
        return _STRATEGIES[rule]
    # The strategy that a view with ``strategy: full`` could have.
    allowed = "" if rule is MaintenanceStrategy.FULL else f"; its SQL allows: {_STRATEGIES[rule]}"
    return f"full, as declared{allowed}"


def strategy_name(entry: GoldEntry) -> str:
    """The maintenance strategy in two or three words, for a column."""
    if entry.strategy is Strategy.FULL or entry.maintenance is None:
        return MaintenanceStrategy.FULL.words
    return entry.maintenance.rule.words


def explained(context: GoldContext, plan: RefreshPlan) -> Explanation:
    """Explain a plan.

    Raises:
        ViewUnknownError: the project has no such view.
        TableMissingError: an input was removed after the plan.
    """
    entry = context.entry(plan.view)
    maintenance = entry.maintenance or _NOBODY
    publication = latest_publication(context.published_at(plan.view))
    maintained = maintenance.rule is not MaintenanceStrategy.FULL
    return Explanation(
        plan=plan,
        entry=entry,
        published=_published(context, plan.view, publication),
        states=_states(context, entry, plan, publication) if maintained else (),
        incremental=_of_changes(context, plan.changes) if maintained else None,
        full=_of_everything(context, plan),
        place=None if maintenance.obstacle is None else _place(context, entry),
        engine=_engine(context, plan, publication),
    )


def _engine(context: GoldContext, plan: RefreshPlan, publication: Publication | None) -> str:
    reason = spark_because(context, plan, publication)
    return "DuckDB, in the process of the refresh" if reason is None else f"Spark, for {reason}"


def _published(
    context: GoldContext, view: str, publication: Publication | None
) -> tuple[int, TableSize] | None:
    if publication is None:
        return None
    return publication.version, log.size(context.published_at(view), publication.version)


def _of_everything(context: GoldContext, plan: RefreshPlan) -> Estimate | None:
    whole = all(plan.vector.get(change.table) is not None for change in plan.changes)
    return estimate(context, plan) if whole else None


def _of_changes(context: GoldContext, changes: tuple[InputChange, ...]) -> Estimate | None:
    """The changed rows, and their share of the bytes of their tables."""
    rows, size = 0, 0.0
    for change in changes:
        moved = change.movement
        if change.kind is ChangeKind.UNCHANGED:
            continue
        if change.kind is not ChangeKind.CHANGED or change.after is None or moved.rows is None:
            return None
        rows += moved.rows
        if moved.total:
            at = context.locations.of(change.table)
            size += log.size(at, change.after.version).bytes * moved.rows / moved.total
    return Estimate(rows=rows, bytes=round(size))


def _states(
    context: GoldContext, entry: GoldEntry, plan: RefreshPlan, publication: Publication | None
) -> tuple[AggregateState, ...]:
    rule = None if entry.maintenance is None else entry.maintenance.rule
    if rule is not MaintenanceStrategy.AGGREGATE_STATE:
        return ()
    types = {str(table): _types(context, table, at) for table, at in plan.vector}
    mark = None if publication is None else publication.watermark
    current = mark is not None and mark.fingerprint == entry.fingerprint
    versions = mark.states if mark is not None and current else {}
    return tuple(
        AggregateState(table, columns, versions.get(table))
        for table, columns in state_columns(entry.query, types).items()
    )


def _types(context: GoldContext, table: TableName, at: TableVersion) -> dict[str, str]:
    columns = log.schema(context.locations.of(table), at.version)
    return {one.name.lower(): one.type for one in columns}


def _place(context: GoldContext, entry: GoldEntry) -> str:
    file = context.settings.project_dir / entry.file
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    return str(obstacle_place(entry, text))
