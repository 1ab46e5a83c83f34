"""Virtual environments as values: their views, those left to build, and masked columns."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from spark_jobs.deploy.environment_errors import EnvironmentInputError, EnvironmentNameError
from spark_jobs.graph.lineage import lineage_of
from spark_jobs.graph.manifest import GoldEntry, Manifest, SilverEntry, SourceEntry
from spark_jobs.graph.order import downstream, tiers
from spark_jobs.graph.personal import personal_columns
from spark_jobs.names import Layer, TableName
from spark_jobs.state.environments import Environment, EnvironmentView, ViewState

# Allowed names: they become directory names and command arguments.
NAME = re.compile(r"[a-z][a-z0-9_]{0,30}")
_REUSED = frozenset({ViewState.BUILT, ViewState.PROMOTED})


def checked_name(text: str) -> str:
    """Validate the name of an environment.

    >>> checked_name("ana_2")
    'ana_2'

    Raises:
        EnvironmentNameError: it is not valid.
    """
    if not NAME.fullmatch(text):
        raise EnvironmentNameError(text)
    return text


def with_views(running: Manifest, project: Manifest, views: Iterable[str]) -> Manifest:
    """The running manifest with some of the project's views; their order is recomputed.

    Args:
        running: the manifest in force, or the project's in its place.
        project: the manifest with these views.
        views: names of gold views.
    """
    gold = {**running.gold, **{view: project.gold[view] for view in views}}
    reads = {name: gold_inputs(entry) for name, entry in gold.items()}
    levels, readers = tiers(reads), downstream(reads)
    ordered = {
        name: entry.model_copy(
            update={"tier": levels[name], "upstream": reads[name], "downstream": readers[name]}
        )
        for name, entry in gold.items()
    }
    return running.model_copy(update={"gold": ordered, "compiled_from": None})


def gold_inputs(entry: GoldEntry) -> tuple[str, ...]:
    """The gold views that a view reads."""
    tables = map(TableName.parse, entry.inputs)
    return tuple(table.name for table in tables if table.layer is Layer.GOLD)


def input_problems(
    running: Manifest, project: Manifest, merged: Manifest, views: Collection[str]
) -> Iterator[EnvironmentInputError]:
    """Tables outside of the environment that differ from what its views would read.

    Args:
        running: the manifest in force.
        project: the project.
        merged: the running manifest with the environment's views.
        views: the environment's views.
    """
    for view in views:
        for table in map(TableName.parse, merged.gold[view].inputs):
            if table.layer is Layer.GOLD and table.name in views:
                continue
            declared, runs = entry_of(project, table), entry_of(running, table)
            if runs is None:
                yield EnvironmentInputError(view, str(table), "was not applied yet")
            elif declared is not None and (lacking := _lacking(declared, runs)):
                problem = f"runs without what the project declares: {', '.join(lacking)}"
                yield EnvironmentInputError(view, str(table), problem)


def entry_of(manifest: Manifest, table: TableName) -> SourceEntry | SilverEntry | GoldEntry | None:
    """The declaration of a table, or None."""
    match table.layer:
        case Layer.BRONZE:
            return manifest.sources.get(table.name)
        case Layer.SILVER:
            return manifest.silver.get(table.name)
        case Layer.GOLD:
            return manifest.gold.get(table.name)


def to_build(
    before: Environment | None,
    known: Manifest | None,
    wanted: Mapping[str, EnvironmentView],
    merged: Manifest,
) -> dict[str, EnvironmentView]:
    """The views of an environment, built ones and those left to build.

    A view stays built if its definition and suite are the same, the gate passed it, and all views
    of the environment that it reads stay built.

    Args:
        before: the current environment; None if there is none.
        known: its manifest.
        wanted: the views that it should have, each after the views that it reads.
        merged: the running manifest with them.
    """
    found: dict[str, EnvironmentView] = {}
    for view, one in wanted.items():
        was = before.views.get(view) if before is not None else None
        entry = merged.gold[view]
        above = [name for name in gold_inputs(entry) if name in wanted]
        stands = (
            was is not None
            and known is not None
            and was.state in _REUSED
            and was.fingerprint == one.fingerprint
            and known.gold[view].suite == entry.suite
            and all(found[name].state is ViewState.BUILT for name in above)
            and all(was.vector.get(f"gold.{name}") == found[name].table for name in above)
        )
        if was is None or not stands:
            found[view] = one
            continue
        found[view] = EnvironmentView(
            why=one.why,
            base=one.base,
            fingerprint=one.fingerprint,
            state=ViewState.BUILT,
            vector=was.vector,
            table=was.table,
            clock=was.clock,
            rows=was.rows,
            seconds=was.seconds,
        )
    return found


def marks(manifest: Manifest) -> frozenset[str]:
    """Columns marked as personal data, as ``layer.table.column`` in lower case."""
    layers: Sequence[Mapping[str, SourceEntry | SilverEntry | GoldEntry]] = (
        manifest.sources,
        manifest.silver,
        manifest.gold,
    )
    return frozenset(
        f"{entry.table_name}.{column.name.lower()}"
        for layer in layers
        for entry in layer.values()
        for column in entry.columns
        if column.pii
    )


def hidden_columns(in_force: Manifest, environment: Environment) -> dict[str, frozenset[str]]:
    """The masked columns of an environment's views, in lower case, by table.

    They are the columns that the new definition marks, columns of the same name that production
    marks, and columns computed from one that production marks and the project does not: removing a
    mark in a file reveals nothing.
    """
    merged = Manifest.stored(environment.manifest) or in_force
    unmarked = marks(in_force) - set(environment.marked)
    found: dict[str, frozenset[str]] = {}
    for view in environment.views:
        entry, was = merged.gold[view], in_force.gold.get(view)
        own = personal_columns(entry)
        hidden = own | (frozenset() if was is None else personal_columns(was))
        hidden |= {
            name.lower()
            for name, origins in lineage_of(entry.query).columns.items()
            if any(f"{one.table}.{one.column}".lower() in unmarked for one in origins)
        }
        hidden &= {column.name.lower() for column in entry.columns}
        unmarked |= {f"{entry.table_name}.{name}" for name in hidden - own}
        found[str(entry.table_name)] = hidden
    return found


def reading(environment: Environment, tables: Collection[str]) -> frozenset[str]:
    """The environment's views that are, or read, some tables, directly or through others."""
    merged = Manifest.stored(environment.manifest)
    if merged is None:
        # Another release wrote it, so the inputs of its views are unknown.
        return frozenset(environment.views)
    touched = set(tables)
    for tier in merged.gold_by_tier():
        touched |= {str(one.table_name) for one in tier if touched & set(one.inputs)}
    return frozenset(view for view in environment.views if f"gold.{view}" in touched)


def moved(in_force: Manifest, environment: Environment) -> tuple[str, ...]:
    """The views whose production definition changed since the environment was planned."""
    found = []
    for view, one in environment.views.items():
        entry = in_force.gold.get(view)
        now = None if entry is None else entry.fingerprint
        if now not in {one.base, one.fingerprint}:
            found.append(view)
    return tuple(found)


def _lacking(
    declared: SourceEntry | SilverEntry | GoldEntry, runs: SourceEntry | SilverEntry | GoldEntry
) -> list[str]:
    there = {column.name.lower(): column.type for column in runs.columns}
    found = [
        f"column {column.name}"
        for column in declared.columns
        if there.get(column.name.lower()) != column.type
    ]
    if isinstance(declared, SourceEntry) and isinstance(runs, SourceEntry):
        found += ["its location"] if declared.location != runs.location else []
    return found
