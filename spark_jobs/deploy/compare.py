"""Compares two manifests: added, changed and removed declarations, and their consequences."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from spark_jobs.definitions.vocabulary import RefreshPolicy, SourceFormat
from spark_jobs.deploy.change import (
    UNKNOWN_COST,
    Action,
    Category,
    Change,
    Cost,
    Kind,
    Work,
)
from spark_jobs.deploy.difference import (
    Difference,
    gold_difference,
    silver_difference,
)
from spark_jobs.deploy.reach import Reach, reach
from spark_jobs.deploy.steps import captured
from spark_jobs.deploy.streams import silver_definition
from spark_jobs.deploy.wording import (
    changed_attributes,
    changed_deprecations,
    changed_descriptions,
    changed_layout,
    columns_of_sink,
    older_rows,
)
from spark_jobs.graph.manifest import (
    GoldEntry,
    Manifest,
    SilverEntry,
    SinkEntry,
    SourceEntry,
)
from spark_jobs.planning.plan import columns_that_differ

_Costs = Mapping[str, Cost]
# Attributes about when a view is refreshed and audited; changes compute nothing.
_SCHEDULE = (
    "refresh",
    "every_seconds",
    "schedule",
    "time_zone",
    "freshness_seconds",
    "verify_seconds",
    "consistency",
)
_WORDS = (
    "description",
    "owner",
    "tags",
    "grain",
    "strategy",
    "contract",
    "contract_version",
)
_NOTHING = Reach()
READ_ELSEWHERE = (
    "Kafka Connect runs elsewhere: apply waits until you run `tidemark source resnapshot --run "
    "--reason TEXT`, which reads all captured tables"
)


def changes(
    before: Manifest,
    after: Manifest,
    *,
    costs: _Costs,
    existing: Mapping[str, int],
    kept: Collection[str] = (),
    connected: bool = False,
    elsewhere: bool = False,
) -> list[Change]:
    """The differences, in the order of the data flow: sources, silver, gold, sinks.

    Args:
        before: the running manifest; empty if nothing runs.
        after: the project.
        costs: costs of computing gold views, by name; others are unknown.
        existing: row counts of the tables of new Debezium sources, by source.
        kept: tables that were removed from the project but still exist.
        connected: whether the connector may exist although ``before`` captures no table.
        elsewhere: whether Kafka Connect runs elsewhere, where no single table can be asked for.
    """
    connected = connected or bool(captured(before))
    return [
        *_sources(before, after, existing, kept, connected=connected, elsewhere=elsewhere),
        *_silver(before, after),
        *_gold(before, after, costs),
        *_suites(before, after),
        *_sinks(before, after),
    ]


def _sources(
    before: Manifest,
    after: Manifest,
    existing: Mapping[str, int],
    kept: Collection[str],
    *,
    connected: bool,
    elsewhere: bool,
) -> Iterator[Change]:
    for name in sorted(before.sources.keys() | after.sources.keys()):
        was, now = before.sources.get(name), after.sources.get(name)
        if was is None and now is not None:
            again = str(now.table_name) in kept
            # Also of a table that is empty now: rows may come before the connector captures it.
            added = _source_added(now, existing.get(name), snapshot=connected, again=again)
            # An empty table needs no snapshot.
            asked = elsewhere and Work.SNAPSHOT in added.work and existing.get(name) != 0
            details = (*added.details, *([READ_ELSEWHERE] if asked else []))
            yield replace(added, details=details)
        elif was is not None and now is None:
            foreign = not was.format.streamed
            work = (Work.NOTHING,) if foreign else (Work.STOP_STREAM, Work.KEEP)
            work = (Work.KEEP,) if was.format.of_file else work
            last = was.format is SourceFormat.DEBEZIUM and not captured(after)
            details = ("the connector and its replication slot are deleted",) if last else ()
            yield _of_source(was, Action.REMOVED, Category.BREAKING, work, details=details)
        elif was is not None and now is not None and was != now:
            yield _source_changed(was, now, after)


def _source_added(source: SourceEntry, rows: int | None, *, snapshot: bool, again: bool) -> Change:
    work: tuple[Work, ...]
    match source.format:
        case SourceFormat.DELTA:
            work = (Work.NOTHING,)
        case SourceFormat.CSV | SourceFormat.JSONL | SourceFormat.PARQUET:
            work = (Work.LOAD_FILE,)
        case SourceFormat.DEBEZIUM:
            work = (Work.CREATE_TOPIC, Work.CAPTURE, Work.START_STREAM)
            # A new connector reads all tables by itself.
            work += (Work.SNAPSHOT,) if snapshot else ()
        case _:
            work = (Work.CREATE_TOPIC, Work.START_STREAM)
    details = []
    if source.topic:
        details.append(f"topic {source.topic}")
    if rows is not None:
        details.append(f"{rows:,} rows are in {source.table}")
    if again and source.format is SourceFormat.DEBEZIUM:
        # A snapshot has the rows that exist, and nobody recorded the deletions.
        details.append("rows deleted at the source since it was removed stay in silver")
    return _of_source(source, Action.ADDED, Category.NON_BREAKING, work, details=tuple(details))


def _source_changed(was: SourceEntry, now: SourceEntry, after: Manifest) -> Change:
    fields = [name for name in SourceEntry.model_fields if getattr(was, name) != getattr(now, name)]
    details = tuple(f"{name.replace('_', ' ')} changed" for name in fields)
    silver = [one for one in after.silver.values() if one.source == now.name]
    restarts = any(silver_definition(was, one) != silver_definition(now, one) for one in silver)
    if set(fields) <= {"description", "owner", "tags", "file"}:
        return _of_source(now, Action.CHANGED, Category.METADATA, (Work.METADATA,), details=details)
    if now.format.of_file:
        reached = reach(after, str(now.table_name), None)
        category = Category.BREAKING if "columns" in fields else Category.NON_BREAKING
        work = (Work.LOAD_FILE,)
        return _of_source(now, Action.CHANGED, category, work, details=details, reached=reached)
    reached = reach(after, str(now.table_name), None) if "location" in fields else _NOTHING
    category = Category.BREAKING if restarts or reached.affected else Category.METADATA
    work = (Work.RESTART_STREAM if restarts else Work.METADATA,)
    return _of_source(now, Action.CHANGED, category, work, details=details, reached=reached)


def _of_source(
    source: SourceEntry,
    action: Action,
    category: Category,
    work: tuple[Work, ...],
    *,
    details: tuple[str, ...] = (),
    reached: Reach = _NOTHING,
) -> Change:
    return Change(
        kind=Kind.SOURCE,
        name=source.name,
        action=action,
        category=category,
        work=work,
        details=details,
        reaches=reached.affected,
        untouched=reached.untouched,
        file=source.file,
    )


def _silver(before: Manifest, after: Manifest) -> Iterator[Change]:
    for name in sorted(before.silver.keys() | after.silver.keys()):
        was, now = before.silver.get(name), after.silver.get(name)
        if was is None and now is not None:
            yield _of_silver(now, Action.ADDED, Category.NON_BREAKING, (Work.START_STREAM,))
        elif was is not None and now is None:
            work = (Work.STOP_STREAM, Work.KEEP)
            yield _of_silver(was, Action.REMOVED, Category.BREAKING, work)
        elif was is not None and now is not None:
            yield from _silver_changed(before, after, was, now)


def _silver_changed(
    before: Manifest, after: Manifest, was: SilverEntry, now: SilverEntry
) -> Iterator[Change]:
    source_was, source_now = before.sources[was.source], after.sources[now.source]
    runs_as = _without_rules(source_was, was), _without_rules(source_now, now)
    reacts = changed_attributes(was, now, ("on_failure",))
    if runs_as[0] == runs_as[1]:
        words = changed_attributes(was, now, ("description", "owner", "tags"))
        details = (*reacts, *words, *changed_descriptions(was, now))
        if details:
            work = Work.RESTART_STREAM if reacts else Work.METADATA
            yield _of_silver(now, Action.CHANGED, Category.METADATA, (work,), details=details)
        return
    difference = silver_difference(before, after, now.name)
    category = Category.BREAKING if difference.breaking else Category.NON_BREAKING
    reached = _reached(after, str(now.table_name), difference)
    yield _of_silver(
        now,
        Action.CHANGED,
        category,
        (Work.RESTART_STREAM,),
        details=(
            *difference.words,
            *changed_layout(was, now),
            *reacts,
            *(older_rows(now) if difference else ()),
        ),
        reached=reached,
    )


def _without_rules(source: SourceEntry, entry: SilverEntry) -> str:
    """What a query runs with, except the suite, which is a change of its own."""
    return silver_definition(source, entry.model_copy(update={"suite": None}))


def _of_silver(
    entry: SilverEntry,
    action: Action,
    category: Category,
    work: tuple[Work, ...],
    *,
    details: tuple[str, ...] = (),
    reached: Reach = _NOTHING,
) -> Change:
    return Change(
        kind=Kind.SILVER,
        name=str(entry.table_name),
        action=action,
        category=category,
        work=work,
        details=details,
        reaches=reached.affected,
        untouched=reached.untouched,
        file=entry.file,
    )


def _gold(before: Manifest, after: Manifest, costs: _Costs) -> Iterator[Change]:
    removed = [one for one in before.gold.values() if one.name not in after.gold]
    for tier in after.gold_by_tier():
        for now in tier:
            was = before.gold.get(now.name)
            cost = costs.get(now.name, UNKNOWN_COST)
            if was is None:
                yield _of_gold(
                    now, Action.ADDED, Category.NON_BREAKING, (Work.FIRST_BUILD,), cost=cost
                )
            elif (change := _gold_changed(was, now, after, cost)) is not None:
                yield change
    for one in sorted(removed, key=lambda entry: entry.name):
        yield _of_gold(one, Action.REMOVED, Category.BREAKING, (Work.KEEP,))


def _gold_changed(was: GoldEntry, now: GoldEntry, after: Manifest, cost: Cost) -> Change | None:
    difference = gold_difference(was, now)
    scheduled = changed_attributes(was, now, _SCHEDULE)
    words = (
        *changed_attributes(was, now, _WORDS),
        *changed_layout(was, now),
        *changed_descriptions(was, now),
        *changed_deprecations(was, now),
    )
    details = (*difference.words, *scheduled, *words)
    if was.fingerprint == now.fingerprint:
        if not details:
            return None
        work = Work.RESCHEDULE if scheduled else Work.METADATA
        return _of_gold(now, Action.CHANGED, Category.METADATA, (work,), details=details)
    category = Category.BREAKING if difference.breaking else Category.NON_BREAKING
    columns = columns_that_differ(now, was.parts)
    work = Work.RECOMPUTE if columns is None else Work.COMPUTE_COLUMNS
    if not difference and columns is not None:
        category, details = Category.METADATA, (*details, "the same result, written otherwise")
    reached = _reached(after, str(now.table_name), difference)
    return _of_gold(
        now, Action.CHANGED, category, (work,), details=details, reached=reached, cost=cost
    )


def _of_gold(
    entry: GoldEntry,
    action: Action,
    category: Category,
    work: tuple[Work, ...],
    *,
    details: tuple[str, ...] = (),
    reached: Reach = _NOTHING,
    cost: Cost = UNKNOWN_COST,
) -> Change:
    if action is Action.ADDED and entry.refresh is RefreshPolicy.CONTINUOUS:
        details = (*details, "the streams keep it up to date")
    return Change(
        kind=Kind.GOLD,
        name=str(entry.table_name),
        action=action,
        category=category,
        work=work,
        details=details,
        reaches=reached.affected,
        untouched=reached.untouched,
        cost=cost,
        file=entry.file,
    )


def _suites(before: Manifest, after: Manifest) -> Iterator[Change]:
    """Suites of tables that stay; suites added or removed with their table are part of that."""
    for layer in ("silver", "gold"):
        was, now = _with_suites(before, layer), _with_suites(after, layer)
        stays = getattr(before, layer).keys() & getattr(after, layer).keys()
        for name in sorted(stays & (was.keys() | now.keys())):
            if was.get(name) != now.get(name):
                of_batches = layer == "silver"
                restarts = of_batches and before.silver[name].rules != after.silver[name].rules
                yield Change(
                    kind=Kind.SUITE,
                    name=f"{layer}.{name}",
                    action=Action.of(name in was, name in now),
                    category=Category.METADATA,
                    work=(Work.RESTART_STREAM if restarts else Work.METADATA,),
                    details=(f"the next {'batch' if of_batches else 'refresh'} is checked by it",),
                    file=f"expectations/{layer}/{name}.json",
                )


def _with_suites(manifest: Manifest, layer: str) -> dict[str, object]:
    entries = getattr(manifest, layer)
    return {name: one.suite for name, one in entries.items() if one.suite is not None}


def _sinks(before: Manifest, after: Manifest) -> Iterator[Change]:
    for name in sorted(before.sinks.keys() | after.sinks.keys()):
        was, now = before.sinks.get(name), after.sinks.get(name)
        if was == now:
            continue
        shown = now or was
        if shown is None or (was and now and _same_delivery(was, now)):
            continue
        action = Action.of(was is not None, now is not None)
        removed = now is None
        yield Change(
            kind=Kind.SINK,
            name=name,
            action=action,
            category=Category.NON_BREAKING if was is None else Category.BREAKING,
            work=(Work.STOP_STREAM,) if removed else (Work.DELIVER,),
            details=(
                f"{shown.system.value} {shown.target}",
                *(["delivered rows stay there"] if removed else []),
                *columns_of_sink(was, now),
            ),
            file=shown.file,
        )


def _same_delivery(was: SinkEntry, now: SinkEntry) -> bool:
    return was.model_copy(update={"file": now.file}) == now


def _reached(after: Manifest, table: str, difference: Difference) -> Reach:
    if not difference.breaking:
        readers = (str(one.table_name) for one in after.gold.values() if table in one.inputs)
        return Reach(untouched=tuple(sorted(readers)))
    return reach(after, table, difference.noticed)
