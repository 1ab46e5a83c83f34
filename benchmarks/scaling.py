"""``make bench-scaling``: TPC-H queries computed in full by one Spark worker and by two.

A worker has one core. Each number of workers has its own stack with a Connect server, which is
stopped at the end. Every result is compared with DuckDB's; a difference invalidates the run.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated

import psutil
import typer

from benchmarks.contenders import Lake, SparkFull
from benchmarks.ivm import PAPERS, RESULTS
from benchmarks.measure import Cost, measured
from benchmarks.records import Facts, run_facts
from benchmarks.tpch.compare import difference
from benchmarks.tpch.duck import Duck
from benchmarks.tpch.project import NAMES, text_of
from benchmarks.tpch.tables import generate, versions
from spark_jobs.sections import Ports, SparkSettings
from spark_jobs.settings import Settings, load_settings
from spark_jobs.stack.ports import bindable
from spark_jobs.stack.session import SessionRecord
from spark_jobs.stack.spark_connect import connect_url
from spark_jobs.stack.stack import Stack
from spark_jobs.storage.session import remote_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "scaling"
WORKERS = (1, 2)
EXECUTOR_MEMORY = "1g"
# A scan with groups, a join with a sort, large groups joined again, and joins of six tables.
DEFAULT = ("q01", "q03", "q18", "q05")
HEAD = """\
# One Spark worker and two

Written by `make bench-scaling` on {day}: TPC-H at scale {scale:g}, each query computed in
full and written as a table, by a cluster whose workers have one core each. The machine
has {cores} cores; its load was {load} at start and end. CPU is of every process
of the stack; *others* are the cores that the rest of the machine used meanwhile.
Medians.
"""


class WrongResultError(Exception):
    """A result differs from DuckDB's; the run is invalid."""


@dataclass(frozen=True)
class Point:
    """A query on a number of workers: medians of its rounds, CPU of every process of the stack."""

    query: str
    workers: int
    wall: float
    cpu: float
    others: float
    wall_each: tuple[float, ...]


def main(
    *,
    scale: Annotated[float, typer.Option(min=0.001, help="TPC-H's scale factor.")] = 1,
    query: Annotated[list[str] | None, typer.Option(help="These queries.")] = None,
    repetitions: Annotated[int, typer.Option(min=1, help="Measured rounds; one warms up.")] = 3,
    results: Annotated[Path, typer.Option(help="Where the JSON goes.")] = RESULTS,
    papers: Annotated[Path, typer.Option(help="Where the table goes.")] = PAPERS,
) -> None:
    """Measure, check every result, and write a table."""
    queries = query or list(DEFAULT)
    if unknown := set(queries) - set(NAMES):
        raise typer.BadParameter(f"there is no {', '.join(sorted(unknown))}")
    spark = SparkSettings(executor_java_options="-XX:+UseSerialGC")
    facts = run_facts(seed=0, spark=spark)
    points: list[Point] = []
    with tempfile.TemporaryDirectory(prefix="tidemark-scaling-") as scratch:
        folder = Path(scratch)
        folder.chmod(0o755)
        lake = Lake(folder / "data", scale, folder / "output")
        generate(lake.data, scale=scale)
        for workers in WORKERS:
            with cluster(folder, workers, spark) as (session, root):
                points += measure(lake, session, root, (workers, repetitions, queries))
    facts = facts.finished()
    found = {"facts": asdict(facts), "scale": scale, "points": [asdict(one) for one in points]}
    (results / f"{NAME}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    (papers / f"{NAME}.md").write_text(page(facts, scale, points), encoding="utf-8")


@contextmanager
def cluster(
    folder: Path, workers: int, spark: SparkSettings
) -> Iterator[tuple[SparkSession, psutil.Process]]:
    """A session of a Connect server with executors on this many workers, and its parent process."""
    # Below the range of ephemeral ports, of which an outgoing connection could take a free one.
    candidates = random.sample(range(20_000, 32_000), 1_000)
    free = (port for port in candidates if bindable(port))
    conf = {"spark.executor.cores": "1", "spark.executor.memory": EXECUTOR_MEMORY}
    settings: Settings = load_settings(
        folder,
        state_dir=folder / f"state-{workers}",
        ports={name: next(free) for name in Ports.model_fields},
        spark={**spark.model_dump(), "conf": conf, "shuffle_partitions": max(WORKERS)},
        local={
            "spark_workers": workers,
            "spark_worker_cores": 1,
            "spark_worker_memory": EXECUTOR_MEMORY,
            "free_memory_gib": 2,
        },
    )
    stack = Stack(settings)
    try:
        stack.up(lambda _: None, parts=["spark-connect"])
        session = remote_session(settings, connect_url(settings))
        record = SessionRecord.read(stack.supervisor.record)
        assert record is not None  # noqa: S101 - written by the start above
        yield session, psutil.Process(record.pid)
        session.stop()
    finally:
        stack.down()


def measure(
    lake: Lake, session: SparkSession, root: psutil.Process, order: tuple[int, int, Sequence[str]]
) -> Iterator[Point]:
    """Compute every query in each round; the first is the warm-up, whose results are compared.

    Raises:
        WrongResultError: a result differs from DuckDB's.
    """
    workers, repetitions, queries = order
    contender, known = SparkFull(session, lake), versions(lake.data)
    for query in queries:
        contender.run(query, known)
        truth = Duck(lake.data).rows(text_of(query, scale=lake.scale))
        if wrong := difference(truth, contender.result(query)):
            raise WrongResultError(f"{query} on {workers} workers: {wrong}")
        costs: list[Cost] = []
        for _ in range(repetitions):
            _, cost = measured(partial(contender.run, query, known), process=root)
            costs.append(cost)
        yield Point(
            query=query,
            workers=workers,
            wall=round(median(one.wall for one in costs), 2),
            cpu=round(median(one.cpu for one in costs), 2),
            others=round(median(one.others for one in costs), 2),
            wall_each=tuple(round(one.wall, 2) for one in costs),
        )


def page(facts: Facts, scale: float, points: Sequence[Point]) -> str:
    """The table as Markdown."""
    load = " and ".join(f"{one[0]:.1f}" for one in facts.load)
    head = HEAD.format(day=facts.started_at[:10], scale=scale, cores=facts.cores, load=load)
    lines = [head, "| query | workers | wall, s | CPU, s | others | faster by |", "|---" * 6 + "|"]
    alone = {one.query: one.wall for one in points if one.workers == 1}
    lines += [
        f"| {one.query} | {one.workers} | {one.wall:.2f} | {one.cpu:.2f} | {one.others:.2f} "
        f"| {alone[one.query] / one.wall:.2f} |"
        for one in sorted(points, key=lambda one: (one.query, one.workers))
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    typer.run(main)
