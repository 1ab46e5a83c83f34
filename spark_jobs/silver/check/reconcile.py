"""Compares bronze with silver: every applied record has exactly one disposition."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from spark_jobs.graph.manifest import ApplyMode
from spark_jobs.names import BronzeColumn
from spark_jobs.silver.parse.rows import COORDINATES
from spark_jobs.silver.store.releases import Release, corrected, releases
from spark_jobs.silver.store.tables import SilverTables
from spark_jobs.state.batches import SilverTotals
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.checkpoints import BatchOffsets, last_committed
from spark_jobs.storage.lake import Lake
from spark_jobs.storage.log import table_version
from spark_jobs.storage.reader import read_columns

BRONZE_COORDINATES = (str(BronzeColumn.PARTITION), str(BronzeColumn.OFFSET))
# The file index of an offset before a version's first file.
BEFORE_FIRST_FILE = -1
Coordinates = Counter[tuple[int, int]]


@dataclass(frozen=True)
class SilverFacts:
    """The facts about one silver table, from its tables and counts.

    Attributes:
        covered_rows: rows of bronze in finished batches; None while a version is partly read.
        bronze: coordinates of all rows of bronze.
        changes: coordinates of the stored changes of an SCD type 2 table; None for others.
        released: records that a person took out of quarantine.
        epoch: the epoch whose batches are counted.
    """

    apply: ApplyMode
    totals: SilverTotals
    covered_rows: int | None
    bronze: Coordinates
    silver: Coordinates
    quarantine: Coordinates
    changes: Coordinates | None = None
    released: tuple[Release, ...] = ()
    epoch: int = 1


@dataclass(frozen=True)
class SilverBalance:
    """The result of reconciling one silver table.

    Attributes:
        pending: rows of bronze in no finished batch.
        problems: violated equations, with their numbers.
    """

    totals: SilverTotals
    pending: int
    silver: int
    quarantine: int
    problems: tuple[str, ...] = field(default=())


def reconcile_silver(
    lake: Lake, tables: SilverTables, *, store: ControlStore, source: str
) -> SilverBalance:
    """Compare a silver table with its bronze table and with its batch counts.

    Args:
        lake: the lake.
        tables: the silver table and its helper tables.
        store: has the counts.
        source: location of the bronze table.

    Raises:
        TableMissingError: a table does not exist.
    """
    name = tables.entry.name
    epoch = store.epoch(str(tables.entry.table_name))
    checkpoint = lake.checkpoint(str(tables.entry.table_name), epoch)
    # Read the counts first: batches that finish meanwhile appear as pending, never as lost.
    covered = covered_version(checkpoint)
    totals = store.silver_totals(name, epoch=epoch)
    facts = SilverFacts(
        apply=tables.entry.apply,
        totals=totals,
        covered_rows=None if covered is None else _rows(source, covered),
        bronze=_coordinates(source, BRONZE_COORDINATES),
        silver=_coordinates(tables.table, COORDINATES),
        quarantine=_coordinates(tables.quarantine, BRONZE_COORDINATES),
        changes=_coordinates(tables.changes, COORDINATES)
        if tables.entry.apply is ApplyMode.HISTORY
        else None,
        released=tuple(releases(tables.releases)),
        epoch=epoch,
    )
    return balance(facts)


def balance(facts: SilverFacts) -> SilverBalance:
    """Check the equations; while records are pending only some can be checked."""
    totals = corrected(facts.totals, facts.released, epoch=facts.epoch)
    bronze = facts.bronze.total()
    released = {one.place for one in facts.released}
    halfway = facts.quarantine.keys() & released
    silver, quarantine = facts.silver.total(), facts.quarantine.total() - len(halfway)
    pending = max(0, bronze - totals.records)
    settled = facts.covered_rows is not None and pending == 0
    equations = {
        "records = applied + superseded + quarantined + duplicate + ignored": (
            totals.records,
            totals.accounted,
        ),
    }
    if facts.covered_rows is not None and (settled or facts.covered_rows > totals.records):
        equations["bronze rows covered = records"] = (facts.covered_rows, totals.records)
    if settled:
        equations["quarantine rows = quarantined"] = (quarantine, totals.quarantined)
        if facts.apply is ApplyMode.APPEND:
            equations["silver rows = applied"] = (silver, totals.applied)
        if facts.changes is not None:
            taken = totals.applied + totals.superseded
            equations["remembered changes = applied + superseded"] = (facts.changes.total(), taken)
    problems = [
        f"{equation}: {left} is not {right}"
        for equation, (left, right) in equations.items()
        if left != right
    ]
    if halfway:
        problems.append(
            f"{len(halfway)} records are being reprocessed; if no command is running, "
            "run tidemark quarantine reprocess again"
        )
    problems += _overlaps(facts)
    return SilverBalance(totals, pending, silver, quarantine, tuple(problems))


def covered_version(checkpoint: str) -> int | None:
    """The bronze version up to which all rows are in finished batches; -1 before the first.

    None while the last finished batch covers only part of a version.
    """
    return version_before(last_committed(checkpoint))


def version_before(batch: BatchOffsets | None) -> int | None:
    """The bronze version up to which all rows are in batches up to this one.

    Args:
        batch: the last batch; None if there is none.
    """
    if batch is None:
        return -1
    if batch.offsets["index"] != BEFORE_FIRST_FILE:
        return None
    return int(batch.offsets["reservoirVersion"]) - 1


def _overlaps(facts: SilverFacts) -> list[str]:
    parts = {"silver": facts.silver, "quarantine": facts.quarantine}
    if facts.changes is not None:
        parts["remembered changes"] = facts.changes
    problems = [
        f"{name}: {rows.total() - len(rows)} rows repeat a record"
        for name, rows in parts.items()
        if rows.total() != len(rows)
    ]
    released = {one.place for one in facts.released}
    both = (facts.silver.keys() & facts.quarantine.keys()) - released
    if both:
        problems.append(f"{len(both)} records are in silver and in quarantine")
    alien = (facts.silver.keys() | facts.quarantine.keys()) - facts.bronze.keys()
    if alien:
        problems.append(f"{len(alien)} records in silver or quarantine are not in bronze")
    return problems


def _rows(location: str, version: int) -> int:
    newest = table_version(location)
    if version < 0 or newest is None:
        return 0
    # A stream's offset may name a version that is not written yet.
    return _coordinates(location, BRONZE_COORDINATES, min(version, newest.version)).total()


def _coordinates(
    location: str, names: tuple[str, str] | tuple[str, ...], version: int | None = None
) -> Coordinates:
    table = read_columns(location, names, version)
    first, second = (table.column(name).to_pylist() for name in names)
    return Counter(zip(first, second, strict=True))
