"""``make bench-streams``: rates, latencies, upserts and memory of the streams.

Each section has its own broker and streaming application, which are stopped at its end, even after
an interruption. A wrong result invalidates its section.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from benchmarks.ivm import PAPERS, RESULTS
from benchmarks.records import run_facts
from benchmarks.streams.flink import VERSION, FlinkMissingError, installed
from benchmarks.streams.report import NAME, write_report
from benchmarks.streams.results import Engines, Pace, Peer, Results, VoidError
from benchmarks.streams.running import BenchmarkStuckError
from benchmarks.streams.sections import Bench
from benchmarks.streams.steady import steady
from spark_jobs.errors import LakehouseError
from spark_jobs.sections import SparkSettings, StreamSettings


class SectionName(StrEnum):
    """Sections that can be run separately."""

    INGEST = "ingest"
    LATENCY = "latency"
    UPSERTS = "upserts"
    PEER = "peer"
    # Its duration is a parameter, so it only runs on request.
    MEMORY = "memory"


def main(
    *,
    only: Annotated[list[SectionName] | None, typer.Option(help="These sections.")] = None,
    pace: Annotated[
        list[str] | None,
        typer.Option(help="Triggers of bronze, silver and gold, such as 5,5,5; in seconds."),
    ] = None,
    engine: Annotated[
        list[Engines] | None, typer.Option(help="The settings streams.engine and gold.engine.")
    ] = None,
    events: Annotated[int, typer.Option(min=1, help="To take in.")] = 5_000_000,
    counted: Annotated[int, typer.Option(min=1, help="To count, beside the peer.")] = 1_000_000,
    rate: Annotated[int, typer.Option(min=1, help="Events a second.")] = 10_000,
    seconds: Annotated[float, typer.Option(min=1, help="With events, for latency.")] = 120,
    idle_seconds: Annotated[float, typer.Option(min=1, help="Without events.")] = 60,
    minutes: Annotated[float, typer.Option(min=0.1, help="With events, for memory.")] = 60,
    steady_rate: Annotated[int, typer.Option(min=1, help="Events a second, for memory.")] = 200,
    rows: Annotated[int, typer.Option(min=1, help="Of the table to change.")] = 3_000_000,
    changes: Annotated[int, typer.Option(min=10, help="Of its rows, a round.")] = 3_000,
    repetitions: Annotated[int, typer.Option(min=1, help="Measured rounds of changes.")] = 3,
    seed: Annotated[int, typer.Option(help="Decides changes and order.")] = 1,
    memory: Annotated[str, typer.Option(help="Heap of the JVM.")] = SparkSettings().driver_memory,
    java_options: Annotated[str, typer.Option(help="Of the JVM.")] = SparkSettings().java_options,
    results: Annotated[Path, typer.Option(help="Where the JSON goes.")] = RESULTS,
    papers: Annotated[Path, typer.Option(help="Where table and plot go.")] = PAPERS,
) -> None:
    """Measure, check every result, and write a table and a plot; other sections stay unchanged."""
    spark = SparkSettings(
        master="local[2]",
        driver_memory=memory,
        java_options=java_options,
        # The memory of the application is read from its metrics at this address.
        conf={"spark.ui.enabled": "true"},
    )
    paces = [_pace(one, by) for one in pace or [_default_pace()] for by in engine or Engines]
    console = Console(stderr=True)
    signal.signal(signal.SIGTERM, _interrupt)
    found = Results.read(results / f"{NAME}.json")
    failed = False
    with _progress(console) as tell:
        bench = Bench(spark, tell)
        measures: dict[SectionName, Callable[[], object]] = {
            SectionName.INGEST: lambda: [bench.ingest(one, events=events) for one in paces],
            SectionName.LATENCY: lambda: [
                bench.chain(one, rate=rate, seconds=seconds, idle_seconds=idle_seconds)
                for one in paces
            ],
            SectionName.UPSERTS: lambda: bench.upserts(
                rows=rows, changes=changes, repetitions=repetitions, seed=seed
            ),
            SectionName.PEER: lambda: _peer(bench, paces[0], counted),
            SectionName.MEMORY: lambda: steady(bench, paces[0], rate=steady_rate, minutes=minutes),
        }
        for name in only or [one for one in SectionName if one is not SectionName.MEMORY]:
            facts = run_facts(seed=seed, spark=spark)
            try:
                section = {"facts": facts, "found": measures[name]()}
            except (VoidError, BenchmarkStuckError, LakehouseError) as error:
                console.print(f"[red]void:[/] {name}: {error}", markup=True, soft_wrap=True)
                failed = True
                continue
            section["facts"] = facts.finished()
            found = Results.model_validate({**dict(found), str(name): section})
            # After each section, so that results are kept if the next one fails.
            for file in write_report(found, data=results, papers=papers):
                console.print(f"wrote {file}")
    if failed:
        raise typer.Exit(1)


def _peer(bench: Bench, pace: Pace, events: int) -> Peer:
    """The results with Flink, or with the reason why it is missing."""
    bench.tell("peer: installing Flink")
    with ExitStack() as opened:
        flink, missing = None, ""
        try:
            flink = opened.enter_context(installed())
        except FlinkMissingError as error:
            missing = str(error)
        found = bench.catch_up(pace, events=events, flink=flink)
    told = {"flink_version": VERSION, "missing": missing or found.missing}
    return found.model_copy(update=told)


def _default_pace() -> str:
    pace = StreamSettings()
    seconds = (
        pace.bronze_trigger_seconds,
        pace.silver_trigger_seconds,
        pace.gold_trigger_seconds,
    )
    return ",".join(map(str, seconds))


def _pace(text: str, engine: Engines) -> Pace:
    try:
        bronze, silver, gold = map(float, text.split(","))
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not like 5,5,5") from error
    return Pace(bronze=bronze, silver=silver, gold=gold, engine=engine)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Exit as after Ctrl-C, so that everything that was started is stopped."""
    del number, frame
    raise KeyboardInterrupt


@contextmanager
def _progress(console: Console) -> Iterator[Callable[[str], None]]:
    """The progress display."""
    shown = Progress(
        SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=console
    )
    with shown:
        task = shown.add_task("starting", total=None)

        def tell(words: str) -> None:
            shown.reset(task, description=words)
            if not console.is_terminal:
                console.print(words)

        yield tell


if __name__ == "__main__":
    typer.run(main)
