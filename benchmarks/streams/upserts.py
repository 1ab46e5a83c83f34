"""A few scattered changes of a large table of current rows, by a silver batch and other methods.

All start from the same rows and apply the same changes in the same order; the resulting tables must
be equal. The silver batch reads a database's change records, the others typed rows.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from deltalake import DeltaTable

from benchmarks.measure import Cost, measured
from benchmarks.streams.project import ACCOUNTS, write_rows
from benchmarks.streams.results import Upserts, VoidError
from spark_jobs.sections import Engine, SparkSettings
from spark_jobs.settings import Settings, load_settings
from spark_jobs.silver.apply.batch import BatchApplier
from spark_jobs.silver.parse.rows import BRONZE_SCHEMA
from spark_jobs.silver.store.tables import SilverTables
from spark_jobs.state.types import utc_now
from spark_jobs.storage import log
from spark_jobs.storage.columns import quoted
from spark_jobs.storage.compiled import compile_settings
from spark_jobs.storage.lake import Lake
from spark_jobs.storage.policy import batch_limit
from spark_jobs.storage.session import QUIET, driver_session
from spark_jobs.storage.streams import streaming_conf
from spark_jobs.storage.tables import append, read, session_values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILES = 8
OURS, QUICK = "silver batch", "silver batch, auto"
_ENGINES = {OURS: Engine.SPARK, QUICK: Engine.AUTO}
VECTORS = "MERGE, deletion vectors"
COPIES = "MERGE, copy-on-write"
DELTA_RS = "delta-rs merge"
_COLUMNS = ("id", "name", "amount", "updated_at")
_FIRST = datetime(2026, 1, 1, tzinfo=UTC)
# One change in ten is of a key that the table does not have yet.
_NEW_SHARE = 0.1
# As in ordinary sessions; the streaming application's session differs.
_ADAPTIVE = {"spark.sql.adaptive.enabled": "true"}

Row = tuple[int, str, str, datetime]


def changes_of(round_number: int, *, rows: int, changes: int, seed: int) -> list[Row]:
    """The changed rows of a round, each key once: some updated, some new.

    >>> changes_of(1, rows=100, changes=10, seed=1) == changes_of(1, rows=100, changes=10, seed=1)
    True
    """
    rng = random.Random(f"{seed} {round_number}")  # noqa: S311
    new = int(changes * _NEW_SHARE)
    first = rows + (round_number - 1) * new
    keys = [*rng.sample(range(rows), changes - new), *range(first, first + new)]
    at = _FIRST + timedelta(hours=round_number)
    return [(key, f"name {rng.random()}", f"{rng.randrange(10**8) / 100:.2f}", at) for key in keys]


def record(row: Row, position: int) -> tuple[bytes, bytes]:
    """Key and value of Debezium's record for a changed row."""
    key, name, amount, at = row
    image = {"id": key, "name": name, "amount": amount, "updated_at": at.isoformat()}
    source = {"lsn": position, "sequence": json.dumps([str(position), str(position)])}
    change = {"op": "u", "before": None, "after": image, "source": source}
    return json.dumps({"id": key}).encode(), json.dumps(change).encode()


@dataclass(frozen=True)
class Contest:
    """The tables, and the methods to apply changes to them.

    Attributes:
        folder: with all files.
        rows: initial number of rows of the table.
    """

    spark: SparkSession
    settings: Settings
    folder: Path
    rows: int

    @cached_property
    def appliers(self) -> dict[str, BatchApplier]:
        """A silver table's batch function, as in the streaming application, for each engine."""
        return {name: self._applier(engine) for name, engine in _ENGINES.items()}

    def _applier(self, engine: Engine) -> BatchApplier:
        manifest = compile_settings(self.settings)
        entry = manifest.silver[ACCOUNTS]
        source = manifest.sources[entry.source]
        tables = SilverTables.of(Lake(f"{self.settings.lake}/{engine}"), entry)
        tables.create(self.spark, source)
        return BatchApplier(
            source=source,
            entry=entry,
            tables=tables,
            epoch=1,
            max_bytes=self.settings.streams.max_record_bytes,
            record=lambda _: None,
            clock=utc_now,
            few=batch_limit(engine),
        )

    def location(self, name: str) -> str:
        """The location of a method's table."""
        if name in _ENGINES:
            return self.appliers[name].tables.table
        return str(self.folder / name.replace(" ", "_").replace(",", ""))

    def build(self) -> None:
        """Fill every table with the same rows."""
        rows = self.spark.range(0, self.rows, 1, FILES).selectExpr(
            "id",
            "CONCAT('name ', id) AS name",
            "CAST(id % 100000 AS DECIMAL(12, 2)) AS amount",
            f"TIMESTAMP '{_FIRST:%Y-%m-%d %H:%M:%S}' AS updated_at",
        )
        held = rows.selectExpr(
            "*",
            "0 AS __partition",
            "id AS __offset",
            "updated_at AS __arrived_at",
            "'0' AS __sequence",
        )
        for name in _ENGINES:
            append(held, self.location(name))
        append(rows, self.location(COPIES))
        for name in (VECTORS, DELTA_RS):
            shutil.copytree(self.location(COPIES), self.location(name))
        self.spark.sql(
            f"ALTER TABLE delta.{quoted(self.location(VECTORS))} "
            "SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
        )

    def ways(self, round_number: int, changed: list[Row]) -> dict[str, Callable[[], object]]:
        """Each method to apply a round's changes, which are on disk, to its table."""
        place = self.folder / f"round-{round_number}"
        position = 1_000 + round_number
        records = [
            (*record(row, position), None, ACCOUNTS, 0, position * 10**7 + at, utc_now(), utc_now())
            for at, row in enumerate(changed)
        ]
        bronze = self.spark.createDataFrame(records, BRONZE_SCHEMA).coalesce(1)
        bronze.write.parquet(str(place / "records"))
        typed = self.spark.createDataFrame(
            changed, "id bigint, name string, amount string, updated_at timestamp"
        ).selectExpr("id", "name", "CAST(amount AS DECIMAL(12, 2)) AS amount", "updated_at")
        typed.coalesce(1).write.parquet(str(place / "rows"))
        arrived = self.spark.read.parquet(str(place / "records"))
        rows = self.spark.read.parquet(str(place / "rows"))
        return {
            **{
                name: partial(one.apply, arrived, round_number)
                for name, one in self.appliers.items()
            },
            VECTORS: partial(self._merge, rows, VECTORS),
            COPIES: partial(self._merge, rows, COPIES),
            DELTA_RS: partial(self._delta_rs, place / "rows"),
        }

    def check(self) -> None:
        """Compare the tables.

        Raises:
            VoidError: they are not equal.
        """
        found = {name: self._sum(name) for name in (*_ENGINES, VECTORS, COPIES, DELTA_RS)}
        if len(set(found.values())) != 1:
            raise VoidError(f"the tables are not equal: {found}")

    def _sum(self, name: str) -> tuple[int, str]:
        """The number of rows, and a checksum of their values."""
        table = read(self.spark, self.location(name))
        hashed = f"CAST(XXHASH64({', '.join(_COLUMNS)}) AS DECIMAL(38, 0))"
        [row] = table.selectExpr("COUNT(*) AS n", f"SUM({hashed}) AS total").collect()
        return row["n"], str(row["total"])

    def _merge(self, rows: DataFrame, name: str) -> None:
        rows.createOrReplaceTempView("changed")
        with session_values(self.spark, _ADAPTIVE):
            self.spark.sql(
                f"MERGE INTO delta.{quoted(self.location(name))} AS t USING changed AS s "
                "ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            ).collect()

    def _delta_rs(self, rows: Path) -> None:
        source = pq.read_table(rows)
        table = DeltaTable(self.location(DELTA_RS))
        merger = table.merge(source, "t.id = s.id", source_alias="s", target_alias="t")
        merger.when_matched_update_all().when_not_matched_insert_all().execute()


def measure_upserts(
    folder: Path,
    *,
    spark: SparkSettings,
    rows: int,
    changes: int,
    repetitions: int,
    seed: int,
    tell: Callable[[str], None],
) -> Upserts:
    """Apply changes to tables by each method, in a different order in each round.

    The first round is a warm-up.

    Raises:
        VoidError: the tables are not equal at the end.
    """
    write_rows(folder)
    settings = load_settings(folder, state_dir=folder / "state", spark=spark.model_dump())
    session = driver_session(settings, "bench", conf={**streaming_conf(settings), **QUIET})
    try:
        contest = Contest(session, settings, folder, rows)
        tell(f"upserts: {rows:,} rows into each table")
        contest.build()
        size = log.size(contest.location(COPIES)).bytes
        costs: dict[str, list[Cost]] = {}
        for number in range(1, repetitions + 2):
            changed = changes_of(number, rows=rows, changes=changes, seed=seed)
            ways = list(contest.ways(number, changed).items())
            random.Random(f"{seed} {number}").shuffle(ways)  # noqa: S311
            for name, way in ways:
                tell(f"upserts: round {number}, {name}")
                _, cost = measured(way)
                if number > 1:
                    costs.setdefault(name, []).append(cost)
        tell("upserts: comparing the tables")
        contest.check()
    finally:
        session.stop()
    return Upserts(rows=rows, changes=changes, table_bytes=size, costs=costs)
