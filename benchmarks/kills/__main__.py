"""``make bench-kills``: thousands of transactions while parts are killed; silver equals Postgres.

The stack is the run's own and is stopped at its end, also when it is interrupted.
"""

from __future__ import annotations

import signal
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.ivm import PAPERS, RESULTS
from benchmarks.kills.report import write_report
from benchmarks.kills.running import Order, bank, run
from benchmarks.records import run_facts
from benchmarks.streams.results import VoidError
from benchmarks.streams.running import BenchmarkStuckError
from spark_jobs.errors import LakehouseError
from spark_jobs.sections import SparkSettings


def main(
    *,
    count: Annotated[int, typer.Option(min=1, help="Transactions that are committed.")] = 10_000,
    rate: Annotated[float, typer.Option(min=0.1, help="Of them a second.")] = 20,
    every: Annotated[float, typer.Option(min=1, help="Seconds between kills, on average.")] = 30,
    seed: Annotated[int, typer.Option(help="Decides transactions and kills.")] = 1,
    memory: Annotated[str, typer.Option(help="Heap of the streams' JVM.")] = "1g",
    results: Annotated[Path, typer.Option(help="Where the JSON goes.")] = RESULTS,
    papers: Annotated[Path, typer.Option(help="Where the page goes.")] = PAPERS,
) -> None:
    """Run transactions, kill the worker and the streams at random, and compare at the end."""
    spark = SparkSettings(master="local[2]", driver_memory=memory)
    console = Console(stderr=True)
    signal.signal(signal.SIGTERM, _interrupt)
    facts = run_facts(seed=seed, spark=spark)
    try:
        with bank(spark, console.print) as stack:
            order = Order(count=count, rate=rate, every=every, seed=seed)
            outcome = run(stack, order, tell=console.print)
    except (VoidError, BenchmarkStuckError, LakehouseError) as error:
        console.print(f"void: {error}", markup=False, soft_wrap=True)
        raise typer.Exit(1) from error
    for file in write_report(outcome, facts.finished(), data=results, papers=papers):
        console.print(f"wrote {file}")


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Exit as after Ctrl-C, so that everything that was started is stopped."""
    del number, frame
    raise KeyboardInterrupt


if __name__ == "__main__":
    typer.run(main)
