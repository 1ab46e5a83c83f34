"""Differences between a source's declaration and the shapes of its records; nothing is written.

A column has vanished where a record lacks it that was committed after one that had it. By that a
record from before the column was added shows nothing, in whatever order records are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from spark_jobs.definitions.vocabulary import OnDrift, SourceFormat
from spark_jobs.graph.projection import columns_read, split_projection
from spark_jobs.silver.parse.shapes import Kind, Shape
from spark_jobs.state.drift import Arrival, Drift, DriftKind

if TYPE_CHECKING:
    from spark_jobs.graph.manifest import Column, SilverEntry, SourceEntry

# A field that every record names differently is no column.
MOST_OF_A_KIND = 50
LONGEST = 250
_NUMBERS = re.compile(r"tinyint|smallint|int|bigint|float|double|decimal.*")
_EITHER = {Kind.NUMBER, Kind.STRING}


@dataclass(frozen=True, order=True)
class Place:
    """Where a record stands: in the order of commits, and in its topic."""

    sequence: str
    partition: int
    offset: int


@dataclass(frozen=True)
class Seen:
    """A shape, and the first and the last record of a batch that have it.

    Attributes:
        misfit: the column whose value has not the declared type, in these records; or None.
    """

    shape: Shape
    first: Place
    last: Place
    misfit: str | None = None


def arrived(
    seen: Sequence[Seen], source: SourceEntry, known: Mapping[str, Arrival]
) -> dict[str, Arrival]:
    """Columns that arrive for the first time, or earlier than was known, or with a first value."""
    found: dict[str, Arrival] = {}
    for one in sorted(seen, key=lambda one: one.first):
        for column in source.columns:
            kind = one.shape.fields.get(column.name)
            if kind is None:
                continue
            value = kind.value if one.shape.exact and kind is not Kind.NULL else ""
            before = found.get(column.name, known.get(column.name))
            if before is None:
                found[column.name] = Arrival(source.name, column.name, value, one.first.sequence)
            elif one.first.sequence < before.sequence or (value and not before.kind):
                sequence = min(one.first.sequence, before.sequence)
                kept = replace(before, kind=before.kind or value, sequence=sequence)
                found[column.name] = kept
    return found


def differences(
    seen: Sequence[Seen], source: SourceEntry, known: Mapping[str, Arrival]
) -> list[Drift]:
    """Each difference that some shapes show, with the first record that does.

    Args:
        seen: the shapes of a batch.
        source: the declaration.
        known: the columns that have arrived, this batch's among them.
    """
    found: dict[tuple[str, str, str], tuple[Place, Drift]] = {}
    for one in seen:
        for place, drift in _of_shape(one, source, known):
            before = found.get(drift.identity)
            if before is None or place < before[0]:
                found[drift.identity] = place, drift
    counts = dict.fromkeys(DriftKind, 0)
    kept = []
    for _, drift in sorted(found.values(), key=lambda pair: pair[0]):
        counts[drift.kind] += 1
        if counts[drift.kind] <= MOST_OF_A_KIND:
            kept.append(drift)
    return kept


def _of_shape(
    seen: Seen, source: SourceEntry, known: Mapping[str, Arrival]
) -> Iterator[tuple[Place, Drift]]:
    shape, declared = seen.shape, {column.name: column for column in source.columns}
    for name, kind in shape.fields.items():
        if name not in declared:
            yield _drift(source, DriftKind.UNKNOWN, name, kind.value, at=seen.first)
    for name, column in declared.items():
        found, before = shape.fields.get(name), known.get(name)
        if found is not None:
            if before is not None and shape.exact and _changed(before.kind, found, column):
                detail = f"{before.kind} to {found.value}"
                yield _drift(source, DriftKind.RETYPED, name, detail, at=seen.first)
        elif source.format is SourceFormat.DEBEZIUM:
            yield from _absent(seen, source, name, before)
    if seen.misfit in declared:
        sent = shape.fields.get(seen.misfit, Kind.OTHER).value
        detail = f"{sent} that is not {declared[seen.misfit].type}"
        yield _drift(source, DriftKind.RETYPED, seen.misfit, detail, at=seen.first)
    for name, value in shape.unlisted:
        yield _drift(source, DriftKind.VALUE, name, value, at=seen.first)


def _absent(
    seen: Seen, source: SourceEntry, name: str, before: Arrival | None
) -> Iterator[tuple[Place, Drift]]:
    """A row of a table has all of its columns, so that one which it lacks is not there."""
    if before is None:
        yield _drift(source, DriftKind.MISSING, name, at=seen.first)
    elif seen.last.sequence > before.sequence:
        # Where the first record of this shape is older than the column, the last one is not.
        later = seen.first.sequence > before.sequence
        yield _drift(source, DriftKind.VANISHED, name, at=seen.first if later else seen.last)


def _drift(
    source: SourceEntry, kind: DriftKind, name: str, detail: str = "", *, at: Place
) -> tuple[Place, Drift]:
    types = {column.name: column.type for column in source.columns}
    return at, Drift(
        source=source.name,
        kind=kind,
        column=_kept(name),
        detail=_kept(detail),
        declared=types.get(name, ""),
        topic=source.topic or "",
        partition=at.partition,
        offset=at.offset,
        sequence=at.sequence,
    )


def _kept(text: str) -> str:
    """A text of a record as every database can keep it."""
    return text.replace("\0", "\\0")[:LONGEST]


def _changed(before: str, now: Kind, column: Column) -> bool:
    """Whether values of another kind than at first arrive."""
    if not before or now is Kind.NULL or now.value == before:
        return False
    # Numbers that are too long for a number, and NaN, are texts.
    return not (_NUMBERS.fullmatch(column.type) and {before, now.value} <= set(_EITHER))


def stands(drift: Drift, source: SourceEntry) -> bool:
    """Whether a difference is one from the declaration as it is now."""
    column = next((one for one in source.columns if one.name == drift.column), None)
    if drift.kind is DriftKind.UNKNOWN:
        return column is None
    if column is None or column.type != drift.declared:
        return False
    return drift.kind is not DriftKind.VALUE or drift.detail not in column.values


def open_drifts(drifts: Iterable[Drift], source: SourceEntry) -> list[Drift]:
    """The differences that nobody accepted and that the declaration did not take up."""
    return [one for one in drifts if one.accepted_by is None and stands(one, source)]


def told(drifts: Iterable[Drift], source: SourceEntry) -> list[Drift]:
    """The differences that somebody must look at."""
    return [] if source.on_drift is OnDrift.EVOLVE else open_drifts(drifts, source)


def holding(drifts: Iterable[Drift], source: SourceEntry, entry: SilverEntry) -> list[Drift]:
    """The differences at which a silver table waits, by the source's policy."""
    found = [one for one in open_drifts(drifts, source) if one.kind is not DriftKind.MISSING]
    match source.on_drift:
        case OnDrift.WARN | OnDrift.EVOLVE:
            return []
        case OnDrift.HOLD:
            return found
        case None:
            read = source_columns_read(source, entry)
            return [one for one in found if one.kind is DriftKind.VANISHED and one.column in read]


def source_columns_read(source: SourceEntry, entry: SilverEntry) -> frozenset[str]:
    """The source's columns that a silver table is made of."""
    names = tuple(column.name for column in source.columns)
    projection = split_projection(entry.projection)
    written = [sql for _, sql in projection.columns]
    written += filter(None, (projection.condition, entry.apply_as_deletes, entry.sequence_by))
    read = frozenset[str]().union(*(columns_read(one, names) for one in written))
    return frozenset(name for name in names if name.lower() in read)
