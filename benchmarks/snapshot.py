"""``make bench-snapshot``: the first rows of a table, by Debezium and by Spark's JDBC reader.

Both read the same table of the same PostgreSQL into a Delta table, in one run. Of the stack, the
cost of a start with a table of one row is subtracted: what is left is the cost of the rows.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import psycopg
import typer
from deltalake import DeltaTable
from rich.console import Console

from benchmarks.ivm import PAPERS, RESULTS
from benchmarks.measure import measured, stack_cpu
from benchmarks.streams.results import VoidError
from benchmarks.streams.running import own_settings, wait_until
from spark_jobs.names import Layer, TableName
from spark_jobs.sections import SparkSettings, StreamSettings
from spark_jobs.settings import Settings
from spark_jobs.stack.postgres import SHOP, dsn
from spark_jobs.stack.stack import Stack
from spark_jobs.storage.compiled import compile_settings
from spark_jobs.storage.lake import Lake

SECONDS = 1800
FETCHED = 10_000
NAME = "snapshot"
SOURCE = """\
description: Accounts of a bank.
format: debezium
topic: shop.public.accounts
table: public.accounts
keys: [id]
columns:
  id: {type: BIGINT, required: true}
  owner: STRING
  balance: DECIMAL(14,2)
  opened: TIMESTAMP
"""
SILVER = """\
/* silver
description: Accounts of a bank.
*/
SELECT s.id, s.owner, s.balance, s.opened FROM bronze.accounts AS s
"""
TABLE = (
    "CREATE TABLE accounts "
    "(id BIGINT PRIMARY KEY, owner TEXT, balance NUMERIC(14,2), opened TIMESTAMPTZ)"
)
ROWS = (
    "INSERT INTO accounts SELECT i, 'owner ' || i, i * 1.25, "
    "TIMESTAMPTZ '2026-01-01' + i * INTERVAL '1 second' FROM generate_series(1, %s) AS i"
)


@dataclass(frozen=True)
class Snapshot:
    """What the first rows of a table took.

    Attributes:
        rows: their number.
        stack_cpu: CPU-seconds of the whole stack until silver has the rows, start included.
        start_cpu: the same for a table of one row.
        jdbc_cpu: CPU-seconds of a warm Spark session that reads the table into Delta.
        stack_seconds, start_seconds, jdbc_seconds: wall time.
        load: the machine's load average over the last minute, at the end.
    """

    rows: int
    stack_cpu: float
    start_cpu: float
    jdbc_cpu: float
    stack_seconds: float
    start_seconds: float
    jdbc_seconds: float
    load: float

    @property
    def ratio(self) -> float:
        """CPU of the rows by Debezium, for each second by JDBC."""
        return (self.stack_cpu - self.start_cpu) / self.jdbc_cpu


@contextmanager
def bank(folder: Path, rows: int) -> Iterator[Stack]:
    """A stopped stack except for its database, in which the table has its rows."""
    for name, text in (("sources/accounts.yml", SOURCE), ("sql/silver/accounts.sql", SILVER)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    spark = SparkSettings(master="local[2]", driver_memory="2g")
    settings = own_settings(folder, spark, StreamSettings())
    compile_settings(settings)
    stack = Stack(settings)
    try:
        stack.up(lambda _: None, parts=["postgres"])
        with psycopg.connect(dsn(settings, database=SHOP, role=SHOP)) as connection:
            connection.execute(TABLE)
            connection.execute(ROWS, [rows])
        yield stack
    finally:
        stack.down()


def by_debezium(stack: Stack, rows: int) -> tuple[float, float]:
    """CPU-seconds and seconds from the start of the other parts until silver has the rows."""
    began, before = time.monotonic(), stack_cpu(stack)
    place = Lake(stack.settings.lake).location(TableName(Layer.SILVER, "accounts"))
    stack.up(lambda _: None, parts=["streams"])

    def there() -> bool:
        return DeltaTable.is_deltatable(place) and DeltaTable(place).count() >= rows

    wait_until(there, seconds=SECONDS, what=f"silver has {rows:,} rows")
    return stack_cpu(stack) - before, time.monotonic() - began


def by_jdbc(settings: Settings, folder: Path, rows: int) -> tuple[float, float]:
    """CPU-seconds and seconds in which a warm session reads the table into a Delta table."""
    from spark_jobs.storage.session import driver_session  # noqa: PLC0415

    (driver,) = settings.kafka_jars.glob("postgresql-*.jar")
    spark = driver_session(settings, NAME, conf={"spark.jars": str(driver)})
    try:
        spark.range(1000).write.format("delta").save(str(folder / "warm"))

        def read() -> None:
            with psycopg.connect(dsn(settings, database=SHOP, role=SHOP)) as connection:
                known = connection.info
                address = f"jdbc:postgresql://{known.host}:{known.port}/{known.dbname}"
                login = {"user": known.user, "password": known.password}
            table = (
                spark.read.format("jdbc")
                .options(url=address, dbtable="public.accounts", fetchsize=str(FETCHED))
                .option("driver", "org.postgresql.Driver")
                .options(**{key: value for key, value in login.items() if value})
                .load()
            )
            table.write.format("delta").save(str(folder / "jdbc"))

        _, cost = measured(read)
        held = spark.read.format("delta").load(str(folder / "jdbc")).count()
        if held != rows:
            raise VoidError(f"JDBC read {held:,} rows, not {rows:,}")
    finally:
        spark.stop()
    return cost.cpu, cost.wall


def measure(rows: int, console: Console) -> Snapshot:
    """Measure both ways, and a start with one row."""
    found: dict[int, tuple[float, float]] = {}
    jdbc = (0.0, 0.0)
    for number in (1, rows):
        with tempfile.TemporaryDirectory(prefix="bench-snapshot-") as name:
            folder = Path(name)
            # PostgreSQL's user must be able to traverse the directory.
            folder.chmod(0o755)
            with bank(folder, number) as stack:
                console.print(f"{number:,} rows by Debezium")
                found[number] = by_debezium(stack, number)
                if number > 1:
                    for part in ("streams", "connect", "kafka"):
                        stack.supervisor.stop_part(part)
                    console.print(f"{number:,} rows by JDBC")
                    jdbc = by_jdbc(stack.settings, folder, number)
    (start_cpu, start_seconds), (cpu, seconds) = found[1], found[rows]
    values = (cpu, start_cpu, jdbc[0], seconds, start_seconds, jdbc[1], os.getloadavg()[0])
    return Snapshot(rows, *(round(one, 1) for one in values))


def page(found: Snapshot) -> str:
    """The report, as Markdown."""
    return f"""\
# First rows of a table

`make bench-snapshot`: {found.rows:,} rows of four columns, by Debezium and Kafka through bronze
into silver, and by Spark's JDBC reader into one Delta table, in one run. Load {found.load:g}.

| | CPU-seconds | seconds |
|---|---:|---:|
| start of the stack with one row | {found.start_cpu:g} | {found.start_seconds:g} |
| start of the stack with all rows | {found.stack_cpu:g} | {found.stack_seconds:g} |
| JDBC, warm session | {found.jdbc_cpu:g} | {found.jdbc_seconds:g} |

The rows cost {found.ratio:.1f} times the CPU of JDBC. Debezium's way writes each row as a record of
the topic, as a record of bronze with its offset, and as a row of silver.
"""


def main(
    *,
    rows: Annotated[int, typer.Option(min=2, help="Rows of the table.")] = 500_000,
    results: Annotated[Path, typer.Option(help="Where the JSON goes.")] = RESULTS,
    papers: Annotated[Path, typer.Option(help="Where the page goes.")] = PAPERS,
) -> None:
    """Measure the first rows of a table, by Debezium and by JDBC."""
    console = Console(stderr=True)
    found = measure(rows, console)
    (results / f"{NAME}.json").write_text(json.dumps(asdict(found), indent=2) + "\n")
    (papers / f"{NAME}.md").write_text(page(found))
    console.print(page(found), markup=False)


if __name__ == "__main__":
    typer.run(main)
