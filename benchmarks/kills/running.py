"""One run: its own stack, the transactions, the kills, and the comparison at the end."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

import psycopg
from deltalake import DeltaTable

from benchmarks.kills.plan import SCHEMA, TABLES, Transaction, transactions
from benchmarks.streams.results import VoidError
from benchmarks.streams.running import own_settings, wait_until
from spark_jobs.access.kafka import Principal, kafka_access
from spark_jobs.bronze.topics import Topics
from spark_jobs.bronze.transactions import read_transactions, transaction_topic
from spark_jobs.names import Layer, TableName
from spark_jobs.sections import SparkSettings, StreamSettings
from spark_jobs.settings import Settings
from spark_jobs.stack.connector import TOPIC_PREFIX
from spark_jobs.stack.environment import stack_environment
from spark_jobs.stack.postgres import SHOP, dsn
from spark_jobs.stack.stack import Stack
from spark_jobs.storage.compiled import compile_settings
from spark_jobs.storage.lake import Lake

VICTIMS = ("connect", "streams")
READY_SECONDS = 300
SETTLE_SECONDS = 900
_TYPES = {
    "id": "BIGINT",
    "account": "BIGINT",
    "owner": "STRING",
    "note": "STRING",
    "balance": "DECIMAL(14,2)",
    "amount": "DECIMAL(14,2)",
}


@dataclass(frozen=True)
class Order:
    """The parameters of a run.

    Attributes:
        count: number of committed transactions.
        rate: transactions per second.
        every: seconds between two kills, on average.
        seed: of transactions and kills.
    """

    count: int
    rate: float
    every: float
    seed: int


@dataclass
class Done:
    """What was done in the database.

    Attributes:
        numbers: ids of the committed transactions in the database.
    """

    numbers: set[str] = field(default_factory=set)
    statements: int = 0
    rolled_back: int = 0


@dataclass(frozen=True)
class Outcome:
    """The result of a valid run: everything was equal.

    Attributes:
        kills: how often each part was killed, and how often before it was ready again.
        seconds: from the first transaction to the last; ``settled`` until all was equal.
        tables: for each table its rows, and the outcomes of its records.
    """

    transactions: int
    statements: int
    rolled_back: int
    kills: dict[str, int]
    killed_early: int
    seconds: float
    settled: float
    tables: dict[str, dict[str, int]]


def declare(folder: Path) -> None:
    """Write the declarations of the two tables."""
    for table, names in TABLES.items():
        head = "description: A bank's table that changes all the time.\n"
        columns = "".join(f"  {name}: {_TYPES[name]!r}\n" for name in names)
        select = ", ".join(f"s.{name}" for name in names)
        source = (
            f"{head}format: debezium\ntopic: {TOPIC_PREFIX}.public.{table}\n"
            f"table: public.{table}\nkeys: [id]\ncolumns:\n{columns}"
        )
        silver = f"/* silver\n{head}*/\nSELECT {select} FROM bronze.{table} AS s\n"
        for name, text in (
            (f"sources/{table}.yml", source),
            (f"sql/silver/{table}.sql", silver),
        ):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")


@contextmanager
def bank(spark: SparkSettings, tell: Callable[[str], None]) -> Iterator[Stack]:
    """A temporary stack with the tables and the streams over them."""
    with tempfile.TemporaryDirectory(prefix="bench-kills-") as name:
        folder = Path(name)
        # PostgreSQL's user must be able to traverse the directory.
        folder.chmod(0o755)
        declare(folder)
        settings = own_settings(folder, spark, StreamSettings(bronze_trigger_seconds=1))
        compile_settings(settings)
        stack = Stack(settings)
        try:
            tell("starting the stack")
            stack.up(lambda _: None, parts=["postgres"])
            with psycopg.connect(_shop(settings)) as connection:
                for statement in SCHEMA:
                    connection.execute(statement.encode())
            stack.up(lambda _: None, parts=["streams"])
            yield stack
        finally:
            stack.down()


def run(stack: Stack, order: Order, *, tell: Callable[[str], None]) -> Outcome:
    """Run transactions while parts are killed, then compare.

    Args:
        stack: from ``bank``.
        order: the parameters.
        tell: receives the progress.

    Raises:
        VoidError: something differs at the end.
    """
    done, stopping = Done(), Event()
    began = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(_write, stack.settings, order, done, stopping)
        try:
            kills, early = _kill(stack, order, writing, done=done, tell=tell)
        finally:
            stopping.set()
        writing.result()
    worked = time.monotonic() - began
    tell("waiting until everything has arrived")
    wait_until(
        lambda: all(one.ready for one in stack.status(VICTIMS)),
        seconds=READY_SECONDS,
        what="every part serves again",
    )
    tables = _reconciled(stack.settings)
    settled = time.monotonic() - began
    _check(stack.settings, done)
    return Outcome(
        transactions=len(done.numbers),
        statements=done.statements,
        rolled_back=done.rolled_back,
        kills=dict(kills),
        killed_early=early,
        seconds=round(worked, 1),
        settled=round(settled, 1),
        tables=tables,
    )


def _write(settings: Settings, order: Order, done: Done, stopping: Event) -> None:
    began = time.monotonic()
    with psycopg.connect(_shop(settings), autocommit=True) as connection:
        for number, one in enumerate(transactions(order.seed)):
            if len(done.numbers) == order.count or stopping.is_set():
                return
            time.sleep(max(0.0, began + number / order.rate - time.monotonic()))
            _carry_out(connection, one, done)


def _carry_out(connection: psycopg.Connection[Any], one: Transaction, done: Done) -> None:
    with connection.transaction(force_rollback=one.rolled_back):
        for statement in one.statements:
            connection.execute(statement.text.encode(), statement.values or None)
        found = connection.execute("SELECT pg_current_xact_id_if_assigned()::text").fetchone()
    if one.rolled_back:
        done.rolled_back += 1
        return
    done.statements += len(one.statements)
    # A transaction without changes has no id.
    if found is not None and found[0] is not None:
        done.numbers.add(str(found[0]))


def _kill(
    stack: Stack,
    order: Order,
    writing: Future[None],
    *,
    done: Done,
    tell: Callable[[str], None],
) -> tuple[Counter[str], int]:
    """Kill one part after the other as long as transactions run; some before they are ready."""
    rng = random.Random(order.seed)  # noqa: S311
    kills, early = Counter[str](), 0
    while not writing.done():
        time.sleep(rng.uniform(0.2, 1.8) * order.every)
        victim = rng.choice(VICTIMS)
        [part] = stack.status([victim])
        if part.pid and not writing.done():
            tell(f"{len(done.numbers):,} transactions, killing {victim}")
            os.kill(part.pid, signal.SIGKILL)
            kills[victim] += 1
            early += not part.ready
    return kills, early


def _reconciled(settings: Settings) -> dict[str, dict[str, int]]:
    """The outcomes of each table's records, as soon as `tidemark reconcile` reports a balance.

    Raises:
        VoidError: it still reports a difference after some time.
    """
    command = [str(Path(sys.executable).parent / "tidemark"), "reconcile", "--json"]
    told = subprocess.run(
        [*command, "--wait", str(SETTLE_SECONDS)],
        env=stack_environment(settings),
        capture_output=True,
        text=True,
        check=False,
    )
    if told.returncode:
        raise VoidError(f"reconcile: {told.stdout[-3000:]}{told.stderr[-1000:]}")
    found = {}
    for one in json.loads(told.stdout):
        totals = one["records"]["totals"]
        words = ("records", "applied", "superseded", "duplicate", "ignored", "quarantined")
        found[one["silver"]] = {
            "rows": one["records"]["silver"],
            "transactions": one["transactions"],
            "batches": totals["batches"],
            **{word: totals[word] for word in words},
        }
    return found


def _check(settings: Settings, done: Done) -> None:
    """Compare independently of the project's code: rows with rows, and transactions by their ids.

    Raises:
        VoidError: they differ.
    """
    lake = Lake(settings.lake)
    with psycopg.connect(_shop(settings)) as connection:
        for table, names in TABLES.items():
            columns = ", ".join(names)
            theirs = set(connection.execute(f"SELECT {columns} FROM {table}".encode()).fetchall())
            place = lake.location(TableName(Layer.SILVER, table))
            rows = DeltaTable(place).to_pyarrow_table(columns=list(names)).to_pylist()
            ours = Counter(tuple(row.values()) for row in rows)
            if ours != Counter(theirs):
                few = list(itertools.islice(theirs ^ ours.keys(), 3))
                raise VoidError(f"silver.{table} is not {table}: {few}")
    topic = transaction_topic(f"{TOPIC_PREFIX}.public.accounts", "public.accounts")
    topics = Topics(kafka_access(settings, Principal.STREAMS))
    ended = read_transactions(topics, topic or "")
    told = {number for changes in ended.changes.values() for number in changes}
    if done.numbers != told & done.numbers:
        lacking = sorted(done.numbers - told)[:3]
        raise VoidError(f"the connector did not tell of transactions {lacking}")


def _shop(settings: Settings) -> str:
    return dsn(settings, database=SHOP, role=SHOP)
