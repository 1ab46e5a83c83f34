"""The sections that need a broker: ingestion rate of bronze, and latency of each layer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread

import psutil

from benchmarks.measure import measured, resident
from benchmarks.streams.arrivals import arrivals, delays, delays_through, publications
from benchmarks.streams.flink import Flink, FlinkMissingError, Windows
from benchmarks.streams.load import EVENT_BYTES, send_all, send_at
from benchmarks.streams.project import BRONZE, GOLD, SILVER, write_bronze, write_chain
from benchmarks.streams.results import (
    Chain,
    Engines,
    Ingest,
    Memory,
    Pace,
    Peer,
    Spread,
    Upserts,
    VoidError,
)
from benchmarks.streams.running import application, broker, own_settings, wait_until
from benchmarks.streams.upserts import measure_upserts
from benchmarks.tpch.compare import delta_rows
from spark_jobs.names import BronzeColumn, TableName
from spark_jobs.sections import Engine, SparkSettings, StreamSettings
from spark_jobs.settings import Settings
from spark_jobs.storage import log
from spark_jobs.storage.lake import Lake

PATIENCE_SECONDS = 600
# Wait for the end of start-up work before measuring the idle application.
_SETTLE_SECONDS = 10
_SAMPLE_SECONDS = 1.0


@dataclass(frozen=True)
class Bench:
    """Parameters of the sections.

    Attributes:
        spark: heap and JVM options of the application.
        tell: receives the progress.
    """

    spark: SparkSettings
    tell: Callable[[str], None]

    @contextmanager
    def project(self, pace: Pace, write: Callable[[Path], None]) -> Iterator[Settings]:
        """A temporary project with a broker and an empty topic."""
        with TemporaryDirectory(prefix="bench-streams-") as name:
            write(Path(name))
            streams = StreamSettings(
                bronze_trigger_seconds=pace.bronze,
                silver_trigger_seconds=pace.silver,
                gold_trigger_seconds=pace.gold,
            )
            settings = own_settings(Path(name), self.spark, streams)
            if pace.engine is not Engines.DEFAULTS:
                settings = settings.with_engine(Engine(pace.engine))
            with broker(settings):
                yield settings

    def ingest(self, pace: Pace, *, events: int) -> Ingest:
        """The time from the first batch's commit to the last one's, for a full topic."""
        self.tell(f"ingest at {pace}: {events:,} events to the broker")
        with self.project(pace, write_bronze) as settings:
            send_all(settings.kafka, events)
            table = location(settings, BRONZE)
            self.tell(f"ingest at {pace}: from the broker to bronze")
            with application(settings) as process:
                _wait(lambda: _rows(table) > 0, "bronze has its first batch")
                _, cost = measured(
                    lambda: _wait(lambda: _rows(table) >= events, "bronze has all"),
                    process=process,
                )
            found = arrivals(table, BronzeColumn.TIMESTAMP)
        held = sum(one.sent_at.size for one in found)
        if held != events:
            raise VoidError(f"{BRONZE} holds {held} events, not {events}")
        # The first batch overlaps with the start of the application.
        rest = found[1:]
        if not rest:
            raise VoidError(f"{events:,} events are one batch only, which is not timed")
        return Ingest(
            pace=pace,
            events=sum(one.sent_at.size for one in rest),
            event_bytes=EVENT_BYTES,
            seconds=round(rest[-1].at - found[0].at, 3),
            cost=cost,
        )

    def chain(self, pace: Pace, *, rate: int, seconds: float, idle_seconds: float) -> Chain:
        """Events at a rate through bronze and silver into a continuous view."""
        with self.project(pace, write_chain) as settings, application(settings) as process:
            self.tell(f"latency at {pace}: warming up")
            warm = send_at(settings.kafka, rate=rate, seconds=seconds / 3)
            wait_shown(settings, warm)
            time.sleep(_SETTLE_SECONDS)
            self.tell(f"latency at {pace}: at rest")
            _, idle = measured(lambda: time.sleep(idle_seconds), process=process)
            before = {table: _newest(settings, table) for table in (BRONZE, SILVER)}
            self.tell(f"latency at {pace}: {rate:,} events a second for {seconds:.0f} s")

            def through() -> tuple[int, float]:
                began = time.monotonic()
                sent = send_at(settings.kafka, rate=rate, seconds=seconds, first=warm)
                took = time.monotonic() - began
                wait_shown(settings, warm + sent)
                return sent, took

            with sampled(process) as samples:
                (sent, took), cost = measured(through, process=process)
            bronze, silver = (
                [one for one in arrivals(location(settings, table), column) if one.version > last]
                for (table, last), column in zip(
                    before.items(), (BronzeColumn.TIMESTAMP, "event_time"), strict=True
                )
            )
            shown = publications(location(settings, GOLD), SILVER)
            return Chain(
                pace=pace,
                wanted=rate,
                rate=round(sent / took, 1),
                events=sent,
                bronze=Spread.of(delays(bronze)),
                silver=Spread.of(delays(silver)),
                gold=Spread.of(delays_through(silver, shown)),
                idle=idle,
                cost=cost,
                memory=Memory.of(samples),
                files={
                    str(table): log.size(location(settings, table)).files
                    for table in (BRONZE, SILVER, GOLD)
                },
                commits={str(BRONZE): len(bronze), str(SILVER): len(silver)},
            )

    def catch_up(self, pace: Pace, *, events: int, flink: Flink | None) -> Peer:
        """A full topic to the view, from the start of the process; then the same by Flink."""
        with self.project(pace, write_chain) as settings:
            self.tell(f"peer: {events:,} events to the broker")
            send_all(settings.kafka, events)
            self.tell(f"peer: Tidemark at {pace}")

            def ours(opened: ExitStack) -> Windows:
                opened.enter_context(application(settings))
                wait_shown(settings, events)
                return windows(location(settings, GOLD))

            def theirs(opened: ExitStack, found: Flink) -> Windows:
                return opened.enter_context(found.job(settings.kafka))

            with ExitStack() as opened:
                held, cost = measured(partial(ours, opened))
            result = Peer(events=events, pace=pace, ours=cost)
            if flink is None:
                return result
            self.tell("peer: Flink")
            try:
                with ExitStack() as opened:
                    got, cost = measured(partial(theirs, opened, flink))
            except FlinkMissingError as error:
                return result.model_copy(update={"missing": str(error)})
            if held != got:
                raise VoidError(f"Flink's windows are {got}, ours {held}")
            return result.model_copy(update={"flink": cost})

    def upserts(self, *, rows: int, changes: int, repetitions: int, seed: int) -> Upserts:
        """A few changes of a large table, by each method; needs no broker."""
        with TemporaryDirectory(prefix="bench-streams-") as name:
            return measure_upserts(
                Path(name),
                spark=self.spark,
                rows=rows,
                changes=changes,
                repetitions=repetitions,
                seed=seed,
                tell=self.tell,
            )


@contextmanager
def sampled(process: psutil.Process) -> Iterator[list[tuple[float, int]]]:
    """Samples of time and resident bytes of a process and its children, during the block."""
    samples = [(0.0, resident(process))]
    began, stop = time.monotonic(), Event()

    def sample() -> None:
        while not stop.wait(_SAMPLE_SECONDS):
            samples.append((time.monotonic() - began, resident(process)))

    thread = Thread(target=sample, name="memory")
    thread.start()
    try:
        yield samples
    finally:
        stop.set()
        thread.join()


def wait_shown(settings: Settings, events: int) -> None:
    """Wait until the view counts all events, and check that it does not count more.

    Raises:
        BenchmarkStuckError: it does not in time.
        VoidError: a layer has more.
    """
    silver, gold = location(settings, SILVER), location(settings, GOLD)
    _wait(lambda: _rows(silver) >= events, f"{SILVER} has {events} rows")
    _wait(lambda: _counted(gold) >= events, f"{GOLD} counts {events} events")
    for place, held in ((SILVER, _rows(silver)), (GOLD, _counted(gold))):
        if held != events:
            raise VoidError(f"{place} holds {held} events, not {events}")


def windows(gold: str) -> Windows:
    """Number of events and their amount, by the start of the window in seconds."""
    columns, found = delta_rows(gold)
    start, events, amount = map(columns.index, ("window_start", "events", "amount"))
    return {int(row[start].timestamp()): (row[events], str(row[amount])) for row in found}


def _counted(gold: str) -> int:
    if log.table_version(gold) is None:
        return 0
    return sum(events for events, _ in windows(gold).values())


def _rows(location: str) -> int:
    return log.size(location).rows or 0


def location(settings: Settings, table: TableName) -> str:
    """The location of a table."""
    return Lake(settings.lake).location(table)


def _newest(settings: Settings, table: TableName) -> int:
    found = log.table_version(location(settings, table))
    return -1 if found is None else found.version


def _wait(holds: Callable[[], bool], what: str) -> None:
    wait_until(holds, seconds=PATIENCE_SECONDS, what=what)
