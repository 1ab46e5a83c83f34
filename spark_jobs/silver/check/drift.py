"""Differences between a source's declaration and the shapes of its records; read only.

A column has vanished if a record lacks it that was committed after a record that had it. Records
from before the column was added prove nothing, in whatever order they are read.
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

# A field name that differs in every record is not a column.
MOST_OF_A_KIND = 50
LONGEST = 250
_NUMBERS = re.compile(r"tinyint|smallint|int|bigint|float|double|decimal.*")
_EITHER = {Kind.NUMBER, Kind.STRING}


@dataclass(frozen=True, order=True)
class Place:
    """Position of a record: in the order of commits, and in its topic."""

    sequence: str
    partition: int
    offset: int


@dataclass(frozen=True)
class Seen:
    """A shape, with the first and last record of a batch that have it.

    Attributes:
        misfit: a column whose value in these records is not of the declared type, or None.
    """

    shape: Shape
    first: Place
    last: Place
    misfit: str | None = None


def arrived(
    seen: Sequence[Seen], source: SourceEntry, known: Mapping[str, Arrival]
) -> dict[str, Arrival]:
    """Columns seen for the first time, or earlier than known, or with a first value.

    Args:
        seen: the shapes of a batch.
        source: the declaration.
        known: first arrivals, by column.

    Returns:
        new and changed arrivals, by column.
    """
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
    """The differences that some shapes show, each with the first record that shows it.

    Args:
        seen: the shapes of a batch.
        source: the declaration.
        known: first arrivals of columns, including this batch's.
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
    """A record contains all columns of its table, so a missing one was dropped."""
    if before is None:
        yield _drift(source, DriftKind.MISSING, name, at=seen.first)
    elif seen.last.sequence > before.sequence:
        # If the first record of this shape predates the column, the last one does not.
        later = seen.first.sequence > before.sequence
        yield _drift(source, DriftKind.VANISHED, name, at=seen.first if later else seen.last)


def _drift(
    source: SourceEntry, kind: DriftKind, name: str, detail: str = "", *, at: Place
) -> tuple[Place, Drift]:
    types = {column.name: column.type for column in source.columns}
    return at, Drift(
        source=source.name,
        kind=kind,
        column=_storable(name),
        detail=_storable(detail),
        declared=types.get(name, ""),
        topic=source.topic or "",
        partition=at.partition,
        offset=at.offset,
        sequence=at.sequence,
    )


def _storable(text: str) -> str:
    """A record's text in a form that every database can store."""
    return text.replace("\0", "\\0")[:LONGEST]


def _changed(before: str, now: Kind, column: Column) -> bool:
    """Whether the kind of the values differs from the first ones."""
    if not before or now is Kind.NULL or now.value == before:
        return False
    # Very long numbers and NaN are sent as strings.
    return not (_NUMBERS.fullmatch(column.type) and {before, now.value} <= set(_EITHER))


def still_differs(drift: Drift, source: SourceEntry) -> bool:
    """Whether a recorded difference still exists under the current declaration."""
    column = next((one for one in source.columns if one.name == drift.column), None)
    if drift.kind is DriftKind.UNKNOWN:
        return column is None
    if column is None or column.type != drift.declared:
        return False
    return drift.kind is not DriftKind.VALUE or drift.detail not in column.values


def open_drifts(drifts: Iterable[Drift], source: SourceEntry) -> list[Drift]:
    """Differences that nobody accepted and the declaration does not include."""
    return [one for one in drifts if one.accepted_by is None and still_differs(one, source)]


def to_review(drifts: Iterable[Drift], source: SourceEntry) -> list[Drift]:
    """Differences that a person must look at."""
    return [] if source.on_drift is OnDrift.EVOLVE else open_drifts(drifts, source)


def blocking_drifts(
    drifts: Iterable[Drift], source: SourceEntry, entry: SilverEntry
) -> list[Drift]:
    """Differences that block a silver table under the source's policy."""
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
    """The source columns that a silver table reads."""
    names = tuple(column.name for column in source.columns)
    projection = split_projection(entry.projection)
    written = [sql for _, sql in projection.columns]
    written += filter(None, (projection.condition, entry.apply_as_deletes, entry.sequence_by))
    read = frozenset[str]().union(*(columns_read(one, names) for one in written))
    return frozenset(name for name in names if name.lower() in read)
