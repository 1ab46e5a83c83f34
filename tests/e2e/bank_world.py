"""A bank's three tables and its history, as in TPC-B, and a load under which their sums agree."""

from __future__ import annotations

import math
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import psutil
import psycopg
from deltalake import DeltaTable

from spark_jobs.names import Layer, TableName
from spark_jobs.stack.environment import stack_environment
from spark_jobs.stack.postgres import connect, dsn
from spark_jobs.storage.lake import Lake
from tests.e2e import oracle
from tests.e2e.running import TIDEMARK, RunningStack, kill, write_files

TABLES = ("accounts", "tellers", "branches")
PARTS = ("postgres", "kafka", "connect", "streams")
TELLERS, BRANCHES = 20, 4
# After so long, a refresh usually computes.
REFRESH_SECONDS = 8.0
SOURCE = """\
format: debezium
topic: shop.public.{name}
table: public.{name}
keys: [id]
columns: {{id: {{type: BIGINT, required: true}}, amount: BIGINT}}
"""
SILVER = "/* silver\ndescription: Of a test.\n*/\nSELECT s.id, s.amount FROM bronze.{name} AS s\n"
HEADER = """\
/* gold
description: The sum of each of the bank's tables.
owner: tests
refresh: continuous
{more}*/
"""
SUMS = "\nUNION ALL\n".join(
    f"SELECT '{name}' AS name, SUM(x.amount) AS total, COUNT(*) AS number FROM silver.{name} AS x"
    for name in (*TABLES, "history")
)


def project_files(*views: str) -> dict[str, str]:
    """The project; ``views`` are ``transactional`` and ``newest``, one view for each."""
    files: dict[str, str] = {}
    for name in (*TABLES, "history"):
        files |= table_files(name)
    for view in views:
        # The first is the default.
        more = "" if view == "transactional" else f"consistency: {view}\n"
        files[f"sql/gold/{view}.sql"] = HEADER.format(more=more) + SUMS + "\n"
    return files


def table_files(name: str) -> dict[str, str]:
    """A source and its silver table, for a table of the bank."""
    return {
        f"sources/{name}.yml": SOURCE.format(name=name),
        f"sql/silver/{name}.sql": SILVER.format(name=name),
    }


@dataclass
class Bank:
    """A stack over the bank's database.

    Attributes:
        accounts: their number.
        done: number of transactions that were committed, and that were rolled back.
        commits: for each row of the history, when its transaction was committed, as Unix time.
    """

    running: RunningStack
    accounts: int = 500
    done: Counter[str] = field(default_factory=Counter)
    commits: list[float] = field(default_factory=list)
    _versions: dict[str, list[dict[str, tuple[int, int]]]] = field(default_factory=dict)

    @property
    def rows(self) -> dict[str, int]:
        """Number of rows of each table without inserts."""
        return dict(zip(TABLES, (self.accounts, TELLERS, BRANCHES), strict=True))

    def connect(self) -> psycopg.Connection:
        return psycopg.connect(dsn(self.running.settings, database="shop", role="shop"))

    def create(self) -> None:
        with self.connect() as connection:
            for name, rows in self.rows.items():
                connection.execute(f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, amount BIGINT)")
                connection.execute(
                    f"INSERT INTO {name} SELECT i, 0 FROM generate_series(1, {rows}) i"
                )
            connection.execute(
                "CREATE TABLE history (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "
                "amount BIGINT)"
            )

    @contextmanager
    def load(self, *, clients: int, rate: float) -> Iterator[None]:
        """Run transactions of concurrent clients at a rate per second, during the block."""
        stopping = threading.Event()
        threads = [
            threading.Thread(target=self._client, args=(stopping, clients / rate, seed))
            for seed in range(clients)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stopping.set()
            for thread in threads:
                thread.join()

    def _client(self, stopping: threading.Event, pause: float, seed: int) -> None:
        chance = random.Random(seed)
        with self.connect() as connection:
            while not stopping.wait(pause * chance.uniform(0.5, 1.5)):
                keeps = chance.random() < 0.9
                transfer(connection, chance, self.rows)
                connection.commit() if keeps else connection.rollback()
                if keeps:
                    self.commits.append(time.time())
                self.done["committed" if keeps else "rolled back"] += 1

    def change_many(self, amount: int) -> None:
        """One transaction that changes every row of the accounts."""
        with self.connect() as connection:
            connection.execute("UPDATE accounts SET amount = amount + %s", [amount])
            for table in ("tellers", "branches"):
                total = amount * self.accounts
                connection.execute(f"UPDATE {table} SET amount = amount + %s WHERE id = 1", [total])
            connection.execute("INSERT INTO history (amount) VALUES (%s)", [amount * self.accounts])
        self.commits.append(time.time())

    def insert_many(self, rows: int) -> None:
        """One transaction that inserts so many rows, an even number, whose sum is 0."""
        with self.connect() as connection:
            connection.execute(
                "INSERT INTO history (amount) "
                "SELECT CASE WHEN i %% 2 = 0 THEN 1 ELSE -1 END FROM generate_series(1, %s) AS i",
                [rows],
            )
        self.commits += [time.time()] * rows

    def add_table(self, name: str, rows: int) -> None:
        """Create a table with rows, and declare it; the streams get it by ``tidemark apply``.

        Its rows change while those from before are read.
        """
        with self.connect() as connection:
            connection.execute(f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, amount BIGINT)")
            connection.execute(f"INSERT INTO {name} SELECT i, i FROM generate_series(1, {rows}) i")
        write_files(self.running.settings.project_dir, table_files(name))
        applying = threading.Thread(target=self._apply)
        applying.start()
        chance = random.Random(rows)
        with self.connect() as connection:
            while applying.is_alive():
                number = chance.randint(1, rows)
                connection.execute(f"UPDATE {name} SET amount = -amount WHERE id = {number}")
                connection.execute(f"DELETE FROM {name} WHERE id = {chance.randint(1, rows)}")
                connection.commit()
                self.done["changes while a table was added"] += 1
                time.sleep(0.02)

    def _apply(self) -> None:
        applied = self.running.tidemark("apply", "--yes", check=False, seconds=600)
        self.done["applies that succeeded"] += applied.returncode == 0
        print(applied.stdout + applied.stderr)

    def kill_driver(self) -> None:
        """Kill the JVM of the streaming application, not its Python process."""
        parent = self.running.part("streams").pid
        assert parent, "the streams do not run"
        jvms = [one for one in psutil.Process(parent).children() if one.name() == "java"]
        assert jvms, "the streams have no JVM"
        kill(jvms[0].pid)

    def kill_refresh(self, view: str) -> None:
        """Kill a refresh that runs beside the streaming application."""
        seconds = REFRESH_SECONDS
        while not self.done["killed refreshes"]:
            refresh = subprocess.Popen(
                [TIDEMARK, "refresh", view],
                env=stack_environment(self.running.settings),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            time.sleep(seconds)
            refresh.kill()
            self.done["killed refreshes"] += refresh.wait() == -signal.SIGKILL
            # It may have ended before.
            seconds /= 2

    def alter(self) -> None:
        """Add a column with a value in every row, as in a release of the bank."""
        with self.connect() as connection:
            connection.execute("ALTER TABLE tellers ADD COLUMN remark TEXT DEFAULT 'none'")

    def drop_senders(self) -> int:
        """Terminate the database's walsenders; returns their number."""
        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_replication"
        with connect(self.running.settings, "shop") as connection:
            return len(connection.execute(ended).fetchall())

    def totals(self) -> dict[str, tuple[int, int]]:
        """The sum and the number of rows of each table in the database."""
        with self.connect() as connection:
            found = {}
            for name in (*TABLES, "history"):
                query = f"SELECT COALESCE(SUM(amount), 0)::bigint, COUNT(*) FROM {name}"
                row = connection.execute(query).fetchone()
                assert row is not None
                found[name] = row
        return found

    def versions(self, view: str) -> list[dict[str, tuple[int, int]]]:
        """The content of every published version of a view, oldest first."""
        place = Lake(self.running.settings.lake).location(TableName(Layer.GOLD, view))
        if not DeltaTable.is_deltatable(place):
            return []
        found = self._versions.setdefault(view, [])
        for version in range(len(found), DeltaTable(place).version() + 1):
            rows = DeltaTable(place, version=version).to_pyarrow_table().to_pylist()
            found.append({row["name"]: (row["total"] or 0, row["number"]) for row in rows})
        return [one for one in found if one]

    def latencies(self, view: str, *, since: float, until: float = math.inf) -> list[float]:
        """Seconds from each commit to the first version that shows it, sorted.

        Args:
            view: its name.
            since: Unix time from which commits count.
            until: Unix time to which they count.
        """
        place = Lake(self.running.settings.lake).location(TableName(Layer.GOLD, view))
        table = DeltaTable(place)
        published = {one["version"]: one["timestamp"] / 1000 for one in table.history()}
        commits, shown, found = sorted(self.commits), 0, []
        for version in sorted(published):
            rows = DeltaTable(place, version=version).to_pyarrow_table().to_pylist()
            number = {row["name"]: row["number"] for row in rows}.get("history", 0)
            found += [
                published[version] - at for at in commits[shown:number] if since <= at < until
            ]
            shown = max(shown, number)
        return sorted(found)

    def wait_more_than(self, number: int, *, view: str, seconds: float) -> None:
        """Wait until more than this number of versions of a view were published."""
        oracle.wait_until(
            lambda: len(self.versions(view)) > number,
            seconds=seconds,
            what=f"more than {number} versions of {view}",
        )

    def wait_shown(self, view: str, *, seconds: float) -> float:
        """Wait until a view equals the database; returns the duration."""
        wanted, began = self.totals(), time.monotonic()
        while (shown := self.versions(view)[-1:]) != [wanted]:
            assert time.monotonic() < began + seconds, f"{view} shows {shown}, not {wanted}"
            time.sleep(0.5)
        return time.monotonic() - began


def transfer(
    connection: psycopg.Connection, chance: random.Random, tables: Mapping[str, int]
) -> None:
    """TPC-B's transaction."""
    amount = chance.randint(-5000, 5000)
    for name, rows in tables.items():
        # Always in the same order of tables, so that clients wait for each other without deadlocks.
        number = chance.randint(1, rows)
        connection.execute(
            f"UPDATE {name} SET amount = amount + %s WHERE id = %s", [amount, number]
        )
    connection.execute("INSERT INTO history (amount) VALUES (%s)", [amount])


def torn(shown: list[dict[str, tuple[int, int]]]) -> list[dict[str, tuple[int, int]]]:
    """The versions in which the tables' sums differ."""
    return [one for one in shown if len({total for total, _ in one.values()}) > 1]
