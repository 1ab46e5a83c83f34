"""How a plan describes attributes that differ between two declarations."""

from __future__ import annotations

from spark_jobs.graph.manifest import GoldEntry, SilverEntry, SinkEntry


def changed_attributes(was: object, now: object, names: tuple[str, ...]) -> tuple[str, ...]:
    """The attributes that differ, with both values if they are short."""
    found = []
    for name in names:
        old, new = getattr(was, name), getattr(now, name)
        if old != new:
            label = name.removesuffix("_seconds").replace("_", " ")
            long = name in {"description", "tags"}
            found.append(f"{label} changed" if long else f"{label}: {_short(old)} → {_short(new)}")
    return tuple(found)


def changed_layout(was: SilverEntry | GoldEntry, now: SilverEntry | GoldEntry) -> tuple[str, ...]:
    """Other partitions or clustering columns, and what that costs."""
    words = changed_attributes(was, now, ("partition_by", "cluster_by"))
    if was.partition_by != now.partition_by:
        return (*words, "the table is rewritten, and its readers process every row once")
    return (*words, "tidemark maintain rearranges its files") if words else ()


def changed_descriptions(
    was: SilverEntry | GoldEntry, now: SilverEntry | GoldEntry
) -> tuple[str, ...]:
    """Columns with another description and the same meaning."""
    old = {one.name: (one.description, one.pii) for one in was.columns}
    names = [
        one.name
        for one in now.columns
        if one.name in old and old[one.name] != (one.description, one.pii)
    ]
    return (f"described again: {', '.join(names)}",) if names else ()


def changed_deprecations(was: GoldEntry, now: GoldEntry) -> tuple[str, ...]:
    """Columns that a view will remove from another day on than before, or not any more."""
    old = {one.name: one.deprecation for one in was.columns}
    return tuple(
        f"{one.name}: deprecated, may be removed from {one.deprecation.day}"
        if one.deprecation
        else f"{one.name}: not deprecated any more"
        for one in now.columns
        if one.name in old and old[one.name] != one.deprecation
    )


def older_rows(entry: SilverEntry) -> tuple[str, ...]:
    """What becomes of the rows of a silver table that is written differently from now on."""
    table = entry.table_name
    stay = f"rows that are there stay until `tidemark rebuild {table}`"
    return (f"{stay}; `tidemark diff {table}` compares them",)


def columns_of_sink(was: SinkEntry | None, now: SinkEntry | None) -> tuple[str, ...]:
    """What a sink needs if the columns of its table differ."""
    if was is None or now is None or was.columns == now.columns:
        return ()
    return (f"it has other columns, and waits for `tidemark sink rebuild {now.name}`",)


def _short(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)
