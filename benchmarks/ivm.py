"""``make bench-ivm``: the cost of refreshing the TPC-H views after a change.

It compares, interleaved in one run, for each query and share of changes: Tidemark, the full
recomputation by Spark and by DuckDB, and a hand-written MERGE if there is one. A result that
differs from DuckDB's invalidates the run.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.contenders import Contender, DuckFull, Lake, Ours, Versions, contenders
from benchmarks.measure import Cost, measured
from benchmarks.records import IDLE, ORDERS, OURS, Record, Run, ScaleFacts, run_facts
from benchmarks.report import write_report
from benchmarks.tpch.compare import difference
from benchmarks.tpch.project import DATA, NAMES, write_project
from benchmarks.tpch.refresh_sets import SHARES, RefreshSet, apply
from benchmarks.tpch.tables import versions
from spark_jobs.definitions.vocabulary import Strategy
from spark_jobs.gold.refresh.steps import Refresher
from spark_jobs.sections import Engine, SparkSettings
from spark_jobs.settings import REPOSITORY, load_settings
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.compiled import compile_settings
from spark_jobs.storage.session import driver_session

RESULTS = REPOSITORY / "benchmarks/results"
PAPERS = REPOSITORY / "docs/benchmarks"


# A contender's name, its engine setting, its strategy, and the cost.
_Done = tuple[str, str, tuple[str, Cost]]


class Engines(StrEnum):
    """The engine settings under which Tidemark is measured."""

    SPARK = "spark"
    AUTO = "auto"
    BOTH = "both"

    @property
    def each(self) -> list[Engine]:
        return [one for one in Engine if self in {Engines.BOTH, one.value}]


class Keys(StrEnum):
    """Which orders change: orders of any age, or the newest."""

    RANDOM = "random"
    RECENT = "recent"


class WrongResultError(Exception):
    """A contender's result differs from DuckDB's; the run is invalid."""


@dataclass
class Bench:
    """A run over a project that ``opened`` has prepared.

    Attributes:
        lake: the tables; ``seed`` decides their changes and the order of the contenders.
        tell: receives the progress, once for each refresh of a query by all contenders.
        recent: see ``refresh_sets.apply``.
    """

    lake: Lake
    contenders: Sequence[Contender]
    seed: int
    tell: Callable[[str], None]
    records: list[Record] = field(default_factory=list)
    step: int = 0
    recent: bool = False

    def build(self, names: Sequence[str]) -> None:
        """The first result of each query by each contender."""
        now = versions(self.lake.data)
        for name in names:
            self.tell(f"{name}: build")
            self._refresh(name, now)

    def learn(self, names: Sequence[str], share: float) -> None:
        """One refresh of each query by contenders whose choice depends on earlier costs."""
        change = self._change(share)
        for name in names:
            self.tell(f"{name}: {share:.1%} changed, to learn")
            self._refresh(name, change.versions, learning=True)

    def round(self, names: Sequence[str], share: float, *, keep: bool) -> None:
        """One refresh of each query at a share; warm-up rounds are not recorded."""
        change = self._change(share)
        for name in names:
            self.tell(f"{name}: {share:.1%} changed" + ("" if keep else ", to warm up"))
            done = self._refresh(name, change.versions)
            idle = self._idle(name, change.versions)
            if keep:
                self.records += [
                    Record(name, share, contender, chosen, cost, engine)
                    for contender, engine, (chosen, cost) in [*done, *idle]
                ]

    def _change(self, share: float) -> RefreshSet:
        self.step += 1
        return apply(
            self.lake.data, share=share, seed=self.seed, step=self.step, recent=self.recent
        )

    def _refresh(self, name: str, now: Versions, *, learning: bool = False) -> list[_Done]:
        """All contenders in an order that changes with each step, then the comparison."""
        serving = [one for one in self.contenders if one.serves(name)]
        if learning:
            serving = [one for one in serving if isinstance(one, (Ours, DuckFull))]
        random.Random(f"{self.seed} {self.step} {name}").shuffle(serving)  # noqa: S311
        done = [(one.name, one.engine, measured(partial(one.run, name, now))) for one in serving]
        truth = next(one for one in serving if isinstance(one, DuckFull)).result(name)
        for one in serving:
            wrong = difference(truth, one.result(name))
            if wrong is not None:
                raise WrongResultError(f"{name} by {one.name}, change {self.step}: {wrong}")
        return done

    def _idle(self, name: str, now: Versions) -> list[_Done]:
        """The cost of a refresh without changes."""
        ours = [one for one in self.contenders if one.name == OURS]
        return [(IDLE, one.engine, measured(partial(one.run, name, now))) for one in ours]


@contextmanager
def opened(
    folder: Path,
    *,
    scale: float,
    names: Sequence[str],
    spark: SparkSettings,
    hindsight: bool,
    engines: Sequence[Engine],
) -> Iterator[tuple[Lake, tuple[Contender, ...]]]:
    """A generated project with a Spark session, and its contenders."""
    strategies = [Strategy.AUTO]
    if hindsight:
        strategies += [Strategy.INCREMENTAL, Strategy.FULL]
    write_project(folder, scale=scale, names=names, strategies=strategies, engines=engines)
    settings = load_settings(folder, spark=spark)
    manifest = compile_settings(settings)
    session = driver_session(
        settings, "bench", conf={"spark.ui.enabled": "false", "spark.log.level": "ERROR"}
    )
    try:
        with ControlStore.open(settings.control_url) as store:
            refreshers = {
                one: Refresher(
                    settings.with_engine(one), manifest, store, session_factory=lambda _: session
                )
                for one in engines
            }
            lake = Lake(folder / DATA, scale, folder / "output")
            yield lake, contenders(refreshers, lake, strategies)
    finally:
        session.stop()


def main(
    *,
    scale: Annotated[float, typer.Option(help="TPC-H's scale factor.")] = 0.1,
    queries: Annotated[list[str] | None, typer.Option("--query", help="Such as q01.")] = None,
    shares: Annotated[list[float] | None, typer.Option("--share", help="Changed orders.")] = None,
    rows: Annotated[
        list[str] | None,
        typer.Option(help="Changed orders, as a number; such as 100,10000, instead of a share."),
    ] = None,
    keys: Annotated[Keys, typer.Option(help="Which orders change.")] = Keys.RANDOM,
    engine: Annotated[
        Engines, typer.Option(help="The setting gold.engine; both, one beside the other.")
    ] = Engines.BOTH,
    repetitions: Annotated[int, typer.Option(min=1, help="Measured rounds.")] = 3,
    # At least one: only ours has rounds to learn, and by hand their changes are merged then.
    warm_up: Annotated[int, typer.Option(min=1, help="Rounds before, not measured.")] = 1,
    learning: Annotated[
        int, typer.Option(min=0, help="Rounds before those, of ours alone, so that it can choose.")
    ] = 4,
    seed: Annotated[int, typer.Option(help="Decides data changes and order.")] = 1,
    memory: Annotated[str, typer.Option(help="Heap of the JVM.")] = "3g",
    java_options: Annotated[str, typer.Option(help="Of the JVM.")] = SparkSettings().java_options,
    hindsight: Annotated[
        bool, typer.Option(help="Measure each strategy, to tell which was the best.")
    ] = True,
    folder: Annotated[Path | None, typer.Option(help="Where to work; kept.")] = None,
    results: Annotated[Path, typer.Option(help="Where the JSON goes.")] = RESULTS,
    papers: Annotated[Path, typer.Option(help="Where table and plot go.")] = PAPERS,
) -> None:
    """Measure, check every result, and write a table and a plot."""
    names = sorted(queries or NAMES)
    if unknown := set(names) - set(NAMES):
        raise typer.BadParameter(f"no such query: {', '.join(sorted(unknown))}")
    orders = round(ORDERS * scale)
    counts = [int(one) for some in rows or () for one in some.split(",")]
    chosen = sorted({*(shares or ()), *(one / orders for one in counts)}) or list(SHARES)
    spark = SparkSettings(master="local[2]", driver_memory=memory, java_options=java_options)
    if folder is not None and folder.exists() and any(folder.iterdir()):
        raise typer.BadParameter(f"{folder} is not empty")
    work = folder or Path(tempfile.mkdtemp(prefix="bench-ivm-"))
    facts = ScaleFacts(
        **vars(run_facts(seed=seed, spark=spark)),
        scale=scale,
        repetitions=repetitions,
        keys=keys,
    )
    console = Console(stderr=True)
    rounds = learning + warm_up + repetitions
    try:
        with (
            opened(
                work,
                scale=scale,
                names=names,
                spark=spark,
                hindsight=hindsight,
                engines=engine.each,
            ) as opening,
            _progress(console, len(names) * (1 + len(chosen) * rounds)) as tell,
        ):
            bench = Bench(*opening, seed, tell, recent=keys is Keys.RECENT)
            bench.build(names)
            # One share after the other; warm-up rounds build the state that a first refresh needs.
            for share in chosen:
                for _ in range(learning):
                    bench.learn(names, share)
                for at in range(warm_up + repetitions):
                    bench.round(names, share, keep=at >= warm_up)
    except WrongResultError as error:
        console.print(f"[red]void:[/] {error}")
        raise typer.Exit(1) from error
    finally:
        if folder is None:
            shutil.rmtree(work, ignore_errors=True)
    run = Run(facts.finished(), bench.records)
    for file in write_report(run, results=results, papers=papers):
        console.print(f"wrote {file}")


@contextmanager
def _progress(console: Console, total: int) -> Iterator[Callable[[str], None]]:
    """A progress bar of refreshes; the returned function is called before each."""
    bar = Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
        console=console,
    )
    with bar:
        task = bar.add_task("", total=total, completed=-1)
        yield lambda text: bar.update(task, description=text, advance=1)
        bar.update(task, description="done", advance=1)


if __name__ == "__main__":
    typer.run(main)
