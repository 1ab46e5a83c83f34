"""Estimates what a change of a table makes refreshes compute downstream; starts no Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.base.errors import NotAnInputError
from spark_jobs.gold.base.publications import latest_publication
from spark_jobs.gold.refresh.ledger import rows_read
from spark_jobs.gold.refresh.observe import movement_between, newest, observe
from spark_jobs.graph.columns_read import read_of_tables
from spark_jobs.graph.maintenance.reach import RowsMoved
from spark_jobs.graph.manifest import Manifest
from spark_jobs.names import Layer, TableName, TableVersion
from spark_jobs.planning.breaker import usual_rows
from spark_jobs.planning.changes import InputObservation, Movement
from spark_jobs.planning.impact import Arrival, Impact, VersionRange, ViewImpact, view_impact
from spark_jobs.planning.request import downstream
from spark_jobs.storage import log
from spark_jobs.storage.errors import TableMissingError, VersionsGoneError
from spark_jobs.storage.feed import ChangeFeed, change_feed
from spark_jobs.storage.history import first_lost, readable


def possible_inputs(manifest: Manifest) -> tuple[str, ...]:
    """The tables that a gold view may read, sorted."""
    names = [one.table_name for one in manifest.sources.values() if not one.format.streamed]
    names += [one.table_name for one in manifest.silver.values()]
    names += [one.table_name for one in manifest.gold.values()]
    return tuple(map(str, sorted(names)))


def impact(
    context: GoldContext, table: str, *, versions: VersionRange | None, now: datetime
) -> Impact:
    """Estimate the refreshes of all views that depend on a table, for one change of it.

    All other inputs count as unchanged since each view's publication.

    Args:
        context: settings, manifest and locations of the project.
        table: name as ``layer.name``.
        versions: the change; None: for each view, what it has not published yet.
        now: the value of CURRENT_TIMESTAMP.

    Raises:
        NotAnInputError: no gold view may read this table.
        TableMissingError: the table does not exist.
        VersionsGoneError: the versions do not exist, or were vacuumed.
    """
    known = possible_inputs(context.manifest)
    if table not in known:
        raise NotAnInputError(table, known)
    name = TableName.parse(table)
    location = context.locations.of(name)
    current = log.table_version(location)
    if current is None:
        raise TableMissingError(location)
    if versions is not None:
        _check(table, location, versions, current)
    change = _Change(context, name, current, versions)
    found: dict[str, ViewImpact] = {}
    for tier in context.manifest.gold_by_tier():
        for entry in tier:
            if entry.name in change.dependents:
                found[entry.name] = _of_view(context, entry.name, change, found, now=now)
    return Impact(table=name, versions=versions, newest=current, views=tuple(found.values()))


def _check(table: str, location: str, versions: VersionRange, current: TableVersion) -> None:
    if versions.upto > current.version:
        raise VersionsGoneError(table, str(versions), f"Its newest is {current.version}.")
    lost = first_lost(location, after=versions.after, upto=versions.upto)
    if lost is not None:
        raise VersionsGoneError(table, str(versions), f"The log has no commit {lost} any more.")
    if not readable(location, versions.upto):
        problem = f"Files of version {versions.upto} were removed by VACUUM."
        raise VersionsGoneError(table, str(versions), problem)


@dataclass
class _Change:
    """The change to estimate, and its change feed.

    Attributes:
        versions: None: for each view, what it has not published yet.
        columns: columns of the table that each view reads; None: all.
        dependents: views that read the table, directly or through other views.
    """

    context: GoldContext
    table: TableName
    current: TableVersion
    versions: VersionRange | None
    columns: dict[str, frozenset[str] | None] = field(init=False)
    dependents: set[str] = field(init=False)
    _feeds: dict[tuple[int, int], ChangeFeed | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        gold = self.context.manifest.gold
        readers = {name for name, entry in gold.items() if str(self.table) in entry.inputs}
        self.columns = {
            name: read_of_tables(gold[name].query).get(str(self.table), frozenset())
            for name in readers
        }
        self.dependents = downstream(self.context.manifest, readers)

    @property
    def waits(self) -> bool:
        """Whether the change is all that views have not published, and not a version range."""
        return self.versions is None

    @property
    def upto(self) -> int:
        return self.current.version if self.versions is None else self.versions.upto

    def moved(self, seen: InputObservation) -> InputObservation:
        """The input observation that a view would make after the change."""
        before, pinned = seen.before, TableVersion(self.current.table_id, self.upto)
        if before is None or seen.current is None or before.table_id != pinned.table_id:
            return replace(seen, pinned=pinned)
        if seen.current.version < before.version:
            return seen
        if before.version >= pinned.version:
            return _still(seen)
        if self.versions is not None and self.versions.after > before.version:
            before = TableVersion(before.table_id, self.versions.after)
        location = self.context.locations.of(self.table)
        movement = movement_between(location, before, pinned)
        return replace(seen, before=before, pinned=pinned, movement=movement)

    def arrival(self, view: str, moved: InputObservation) -> Arrival:
        """The changed rows, restricted to the columns that a view reads."""
        if moved.before is None or moved.pinned is None:
            return Arrival(None, exact=False)
        feed = self._feed(moved.before.version, moved.pinned.version)
        counted = None if feed is None else feed.net(self.columns[view])
        if counted is not None and moved.movement.fed:
            return Arrival(counted, exact=True)
        return _of_feed(moved)

    def _feed(self, after: int, upto: int) -> ChangeFeed | None:
        if (after, upto) not in self._feeds:
            location = self.context.locations.of(self.table)
            read = [one for one in self.columns.values() if one is not None]
            columns = frozenset[str]().union(*read) if len(read) == len(self.columns) else None
            self._feeds[after, upto] = change_feed(
                location, after=after, upto=upto, columns=columns
            )
        return self._feeds[after, upto]


def _of_view(
    context: GoldContext,
    view: str,
    change: _Change,
    above: Mapping[str, ViewImpact],
    *,
    now: datetime,
) -> ViewImpact:
    seen = observe(context, view, pin=newest)
    inputs: list[InputObservation] = []
    arrivals: dict[str, Arrival] = {}
    held = None
    for one in seen.inputs:
        table = str(one.table)
        source = above.get(one.table.name) if one.table.layer is Layer.GOLD else None
        if one.table == change.table:
            moved = change.moved(one)
            if moved.pinned == moved.before:
                held = f"already at version {moved.before and moved.before.version}"
            elif moved.movement.rows_changed:
                arrivals[table] = change.arrival(view, moved)
        elif source is not None and source.changes_rows:
            moved = _published_next(one, source, waits=change.waits)
            arrivals[table] = Arrival(source.changes, exact=False)
        elif source is not None and change.waits and one.movement.rows_changed:
            # The upstream view already published the change; this view reads it from there.
            moved = one
            arrivals[table] = _of_feed(one)
        else:
            moved = _still(one)
        inputs.append(moved)
    return view_impact(
        context.entry(view),
        replace(seen, inputs=tuple(inputs)),
        clock=now,
        arrivals=arrivals,
        rows=_rows(context, view),
        usual=usual_rows(rows_read(context, view)),
        breaker=context.settings.breaker,
        untouched=held if not arrivals and seen.parked is None else None,
    )


def _still(seen: InputObservation) -> InputObservation:
    """The input as unchanged since the view's publication, if that version still exists."""
    if seen.before is None or seen.pinned is None or seen.before.table_id != seen.pinned.table_id:
        return seen
    if seen.current is not None and seen.current.version < seen.before.version:
        return seen
    total = seen.movement.total
    return replace(seen, pinned=seen.before, movement=Movement(rows_changed=False, total=total))


def _of_feed(seen: InputObservation) -> Arrival:
    """The changed rows that an input's log counts since the view's publication."""
    rows = seen.movement.rows
    return Arrival(None if rows is None else RowsMoved(rows, rows), exact=False)


def _published_next(seen: InputObservation, source: ViewImpact, *, waits: bool) -> InputObservation:
    """The observation of an upstream view after its refresh; its changed rows are unknown.

    Args:
        seen: the upstream view now.
        source: what its refresh would do.
        waits: whether changes that the reader has not published yet count too.
    """
    if seen.current is None:
        version = TableVersion("", 0)
        return replace(seen, pinned=version, current=version)
    version = TableVersion(seen.current.table_id, seen.current.version + 1)
    before = seen.before
    if not waits and before is not None and before.table_id == seen.current.table_id:
        # Older changes that the reader has not published are not part of this change.
        before = seen.current
    movement = Movement(fed=True, total=source.rows)
    return replace(seen, before=before, pinned=version, current=version, movement=movement)


def _rows(context: GoldContext, view: str) -> int | None:
    publication = latest_publication(context.published_at(view))
    if publication is None:
        return None
    return log.size(context.published_at(view), publication.version).rows
