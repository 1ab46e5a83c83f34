"""Spark drivers in separate processes and delta-rs, which append rows to one table."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from spark_jobs.settings import REPOSITORY, Settings
from spark_jobs.stack.environment import stack_environment

DRIVERS = ("spark-1", "spark-2")
DELTA_RS = "delta-rs"

Row = tuple[str, int]


@dataclass(frozen=True)
class Outcome:
    """The writers' results, and the content of the table.

    Attributes:
        acknowledged: rows whose commit was acknowledged, by writer and number.
        tried: all rows that were to be written.
        found: number of copies of each row in the table.
        versions: number of commits after the creation of the table.
    """

    acknowledged: frozenset[Row]
    tried: frozenset[Row]
    found: Counter[Row]
    versions: int

    def __str__(self) -> str:
        writers = dict(Counter(writer for writer, _ in self.acknowledged))
        lost = len(self.acknowledged - self.found.keys())
        unknown = len(self.found.keys() - self.acknowledged)
        return (
            f"acknowledged={writers} versions={self.versions} lost={lost} "
            f"written though not acknowledged={unknown}"
        )


def race(
    store: Settings,
    location: str,
    *,
    rows: int,
    log_store: str = "",
    port: int = 0,
    pause: float = 0.1,
) -> Outcome:
    """Append rows by two drivers, and by delta-rs in the meantime.

    Args:
        store: settings of the store.
        location: of the table, which is created.
        rows: number of rows per driver, one in each commit.
        log_store: the drivers' log store; empty: that of the settings.
        port: of a proxy before the store; 0 for none.
        pause: seconds between two commits of delta-rs, without which it would win most races.
    """
    write_deltalake(location, _row("nobody", -1))
    conf = {"spark.delta.logStore.s3a.impl": log_store} if log_store else {}
    options = {}
    if port:
        endpoint = f"http://127.0.0.1:{port}"
        conf["spark.hadoop.fs.s3a.endpoint"] = endpoint
        options["AWS_ENDPOINT_URL"] = endpoint
    drivers = {name: _driver(store, location, name, rows, conf) for name in DRIVERS}
    for process in drivers.values():
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in drivers.values():
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    acknowledged: set[Row] = set()
    tried = {(name, number) for name in DRIVERS for number in range(rows)}
    number = 0
    while all(process.poll() is None for process in drivers.values()):
        tried.add((DELTA_RS, number))
        try:
            write_deltalake(
                location, _row(DELTA_RS, number), mode="append", storage_options=options
            )
            acknowledged.add((DELTA_RS, number))
        except (DeltaError, OSError) as error:
            print(f"{DELTA_RS} {number}: {str(error)[:500]}")
        number += 1
        time.sleep(pause)
    for name, process in drivers.items():
        output, _ = process.communicate(timeout=600)
        acknowledged |= {(name, one) for one in json.loads(output.strip().splitlines()[-1])}
    table = DeltaTable(location)
    found = [(row["writer"], row["number"]) for row in table.to_pyarrow_table().to_pylist()]
    outcome = Outcome(
        acknowledged=frozenset(acknowledged),
        tried=frozenset(tried),
        found=Counter(row for row in found if row[0] != "nobody"),
        versions=table.version(),
    )
    print(outcome)
    return outcome


def _row(writer: str, number: int) -> pa.Table:
    return pa.table({"writer": [writer], "number": pa.array([number], pa.int32())})


def _driver(
    store: Settings, location: str, name: str, rows: int, conf: dict[str, str]
) -> subprocess.Popen[str]:
    arguments = [str(store.project_dir), location, name, str(rows), json.dumps(conf)]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.s3.writer", *arguments],
        cwd=REPOSITORY,
        env=stack_environment(store),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
