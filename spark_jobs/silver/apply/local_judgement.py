"""Dispositions of a small batch as Arrow data, without Spark.

Gives the same as ``dispositions``, which tests check. For a few thousand rows it takes
milliseconds, where Spark's jobs take a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.names import Disposition
from spark_jobs.silver.apply.dispositions import DISPOSITION, KNOWN
from spark_jobs.silver.parse.documents import PROBLEM
from spark_jobs.silver.parse.rows import ARRIVED_AT, CANDIDATE, COORDINATES, EVENT_ID
from spark_jobs.silver.parse.typed import SEQUENCE

# Whether a row has expired; without this column no row has.
EXPIRED = "__expired"
_Place = tuple[int, int]


def judged_events(batch: pa.Table, held: Iterable[pa.Table], *, identity: str) -> pa.Table:
    """Dispositions for a batch of events: the first record of each event id is applied.

    Args:
        batch: as ``rows.silver_rows`` returns it, optionally with ``EXPIRED``.
        held: rows of the silver table with ``identity`` and coordinates: all whose id is in the
            batch, possibly others.
        identity: the column with the event id.

    Returns:
        the batch with ``DISPOSITION`` and ``KNOWN``, without ``EXPIRED``.
    """
    places: dict[str | None, set[_Place]] = {}
    for table in held:
        ids = table.column(identity).cast(pa.string()).to_pylist()
        for event_id, place in zip(ids, _places(table), strict=True):
            places.setdefault(event_id, set()).add(place)
    # As in SQL, NULL equals no id.
    places.pop(None, None)
    expires = EXPIRED in batch.column_names
    expired = batch.column(EXPIRED).to_pylist() if expires else [False] * batch.num_rows
    ids, own, found = batch.column(EVENT_ID).to_pylist(), _places(batch), _common(batch)
    seen: set[str | None] = set()
    for at in _in_order(batch, [(ARRIVED_AT, "ascending")]):
        event_id = ids[at]
        if found[at] is not None:
            continue
        # A row with the record's own coordinates was written by this very batch, or from another
        # copy of bronze.
        before = event_id in places and own[at] not in places[event_id]
        if event_id in seen or before:
            found[at] = Disposition.DUPLICATE
        elif event_id not in places and expired[at]:
            found[at] = Disposition.IGNORED
        if not before:
            seen.add(event_id)
    known = [event_id in places for event_id in ids]
    return _with_dispositions(batch.drop_columns([EXPIRED]) if expires else batch, found, known)


def judged_changes(batch: pa.Table, held: Iterable[pa.Table], *, keys: Sequence[str]) -> pa.Table:
    """Dispositions for a batch of changes: the last change of each key is applied.

    Args:
        batch: as ``rows.silver_rows`` returns it, without truncations.
        held: rows of the silver table and its tombstones, with keys, ``SEQUENCE`` and coordinates:
            all whose key is in the batch, possibly others.
        keys: the columns that identify a row.

    Returns:
        the batch with ``DISPOSITION`` and ``KNOWN``.
    """
    last: dict[tuple[Any, ...], tuple[str, _Place]] = {}
    for table in held:
        changes = zip(table.column(SEQUENCE).to_pylist(), _places(table), strict=True)
        for key, one in zip(_keys(table, keys), changes, strict=True):
            last[key] = max(last.get(key, one), one)
    named, sequences = _keys(batch, keys), batch.column(SEQUENCE).to_pylist()
    own, found = _places(batch), _common(batch)
    newest_of: dict[tuple[Any, ...], tuple[str, int]] = {}
    for at in _in_order(batch, [(SEQUENCE, "descending")]):
        key, sequence = named[at], sequences[at]
        if found[at] is not None:
            continue
        newest, before = newest_of.setdefault(key, (sequence, at)), last.get(key)
        if sequence < newest[0]:
            found[at] = Disposition.SUPERSEDED
        elif at != newest[1]:
            found[at] = Disposition.DUPLICATE
        elif before is not None and sequence < before[0]:
            found[at] = Disposition.SUPERSEDED
        elif before is not None and sequence == before[0] and own[at] != before[1]:
            found[at] = Disposition.DUPLICATE
    return _with_dispositions(batch, found, [key in last for key in named])


def _common(batch: pa.Table) -> list[Disposition | None]:
    """The dispositions that do not depend on other records."""
    problems = pc.is_valid(batch.column(PROBLEM)).to_pylist()
    return [
        Disposition.QUARANTINED if problem else None if candidate else Disposition.IGNORED
        for problem, candidate in zip(problems, batch.column(CANDIDATE).to_pylist(), strict=True)
    ]


def _with_dispositions(
    batch: pa.Table, found: Sequence[Disposition | None], known: Sequence[bool]
) -> pa.Table:
    words = [str(one or Disposition.APPLIED) for one in found]
    annotated = batch.append_column(DISPOSITION, pa.array(words, pa.string()))
    return annotated.append_column(KNOWN, pa.array(known, pa.bool_()))


def _in_order(batch: pa.Table, by: list[tuple[str, str]]) -> list[int]:
    # Partitions have no common order; ordering by coordinates does not depend on the batches.
    keys = [*by, *((name, "ascending") for name in COORDINATES)]
    first = [(name, order, "at_start") for name, order in keys]
    found: list[int] = pc.sort_indices(batch, sort_keys=first).to_pylist()
    return found


def _places(table: pa.Table) -> list[_Place]:
    return list(zip(*(table.column(name).to_pylist() for name in COORDINATES), strict=True))


def _keys(table: pa.Table, keys: Sequence[str]) -> list[tuple[Any, ...]]:
    return list(zip(*(table.column(name).to_pylist() for name in keys), strict=True))
