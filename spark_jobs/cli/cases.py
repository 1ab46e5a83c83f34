"""``tidemark test``: runs the case files of gold views and silver tables in a temporary lake."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spark_jobs.cli.completion import TABLES_HELP, complete_tables
from spark_jobs.errors import LakehouseError, counted
from spark_jobs.java_options import SHORT_RUN
from spark_jobs.names import Layer
from spark_jobs.sections import Engine
from spark_jobs.serving.project import current_manifest, tables_of
from spark_jobs.settings import Settings, load_settings
from spark_jobs.terminal.tables import FittedTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.graph.manifest import Manifest
    from spark_jobs.testing.ended import Ended
    from spark_jobs.testing.run import StepResult
    from spark_jobs.testing.silver_results import SilverStepResult


_ENGINES = {"duckdb": "DuckDB", "spark": "Spark"}


class LazySession:
    """Starts a Spark session when it is first called."""

    def __init__(self, settings: Settings, name: str) -> None:
        self._settings = settings
        self._name = name
        self._session: SparkSession | None = None

    def __call__(self) -> SparkSession:
        from spark_jobs.storage.session import QUIET, driver_session
        from spark_jobs.testing.run import FEW_ROWS

        if self._session is None:
            conf = {**QUIET, **FEW_ROWS}
            spark = self._settings.spark.model_copy(update={"java_options": SHORT_RUN})
            short = self._settings.model_copy(update={"spark": spark})
            self._session = driver_session(short, self._name, conf=conf)
        return self._session

    def close(self) -> None:
        """Stop the session if it was started."""
        if self._session is not None:
            self._session.stop()


def run_cases(
    context: typer.Context,
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            help=f"{TABLES_HELP} Default: all with a case.", autocompletion=complete_tables
        ),
    ] = None,
    engine: Annotated[
        Engine,
        typer.Option(
            help="auto: without Spark where the rows are known to be the same; "
            "spark: all on Spark, the last check before a release."
        ),
    ] = Engine.AUTO,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Run the case files of gold views and silver tables, and compare the rows."""
    settings = load_settings(context.obj)
    manifest = current_manifest(settings)
    files = selected_cases(settings, manifest, tables or [])
    console = Console(stderr=as_json, highlight=False)
    with tempfile.TemporaryDirectory(prefix="tidemark-test-") as directory:
        own = settings.moved_to(Path(directory))
        session = LazySession(own, "tidemark test")
        try:
            ended = []
            strays = () if tables else strays_of(settings)
            for one in chain(strays, run_files(files, manifest, own, session, engine=engine)):
                ended.append(one)
                print_case(console, one)
        finally:
            session.close()
    if as_json:
        typer.echo(json.dumps([one.as_dict() for one in ended], indent=2, default=str))
    failed = sum(not one.passed for one in ended)
    console.print(f"{len(ended) - failed} of {len(ended)} cases passed")
    if failed:
        raise typer.Exit(1)


def selected_cases(settings: Settings, manifest: Manifest, tables: list[str]) -> tuple[Path, ...]:
    """The case files of a selection; a table that is named must have one.

    Raises:
        LakehouseError: see ``tables_of`` and ``chosen_cases``.
    """
    from spark_jobs.planning.selection import names_one_table
    from spark_jobs.testing.case_files import chosen_cases, every_case_file, table_of

    if not tables:
        return chosen_cases(settings.project_dir, manifest, None)
    wanted = tables_of(settings, manifest, tables)
    if named := [one for one in tables if names_one_table(one)]:
        chosen_cases(settings.project_dir, manifest, named)
    return tuple(one for one in every_case_file(settings.project_dir) if table_of(one) in wanted)


def strays_of(settings: Settings) -> Iterator[Ended]:
    """Case files that are in no place where cases are read; each one fails."""
    from spark_jobs.testing.case_files import stray_cases
    from spark_jobs.testing.ended import Ended

    for name, error in stray_cases(settings.project_dir):
        yield Ended(name=name, error=error)


def run_files(
    files: tuple[Path, ...],
    manifest: Manifest,
    settings: Settings,
    session: LazySession,
    *,
    engine: Engine = Engine.AUTO,
) -> Iterator[Ended]:
    """Run case files one after another.

    Args:
        files: to run.
        manifest: the project.
        settings: with a temporary state directory; each file gets a lake below it.
        session: the session for all files.
        engine: the engine of the refreshes and of the batches.
    """
    from spark_jobs.testing.case_files import read_case
    from spark_jobs.testing.ended import Ended, run_case

    for file in files:
        if file.parent.name == Layer.SILVER:
            yield _run_silver(file, manifest, settings.with_engine(engine), session)
            continue
        try:
            case = read_case(file, manifest)
        except LakehouseError as error:
            yield Ended(name=file.stem, error=error)
            continue
        yield run_case(case, manifest=manifest, settings=settings, session=session, engine=engine)


def _run_silver(file: Path, manifest: Manifest, settings: Settings, session: LazySession) -> Ended:
    from spark_jobs.testing.ended import Ended
    from spark_jobs.testing.silver_case_files import case_name, read_silver_case

    try:
        case = read_silver_case(file, manifest)
    except LakehouseError as error:
        return Ended(name=case_name(file.stem), error=error)
    from spark_jobs.testing.silver_run import run_silver_case

    return run_silver_case(case, manifest=manifest, settings=settings, session=session)


def print_case(console: Console, ended: Ended) -> None:
    """Print one line about a case, and the differences if it failed."""
    word = Text("passed", style="green") if ended.passed else Text("failed", style="red")
    if ended.error is not None:
        console.print(Text.assemble(word, f" {ended.name}{_by(ended)}"), soft_wrap=True)
        console.print(ended.error.render(), markup=False, soft_wrap=True)
    elif ended.result is not None:
        steps = ended.result.steps
        line = f" {ended.name}, {counted(len(steps), 'step')}{_by(ended)}"
        console.print(Text.assemble(word, line), soft_wrap=True)
        for remark in ended.result.remarks:
            console.print(remark, markup=False, soft_wrap=True)
        if steps[-1].missing or steps[-1].unexpected:
            console.print(difference_table(steps[-1]))


def _by(ended: Ended) -> str:
    """The engine, and why DuckDB did not run the case."""
    if ended.engine is None:
        return ""
    reason = f", for {ended.because}" if ended.because else ""
    return f", by {_ENGINES[ended.engine]}{reason}"


def difference_table(step: StepResult | SilverStepResult) -> Table:
    """The rows that differ: - marks expected rows that are missing, + rows not expected."""
    table = FittedTable(title=f"after: {step.step}", numbered=True)
    table.add_column("±")
    rows = [*(("-", row) for row in step.missing), *(("+", row) for row in step.unexpected)]
    for name in rows[0][1]:
        table.add_column(name, overflow="fold")
    for sign, row in rows:
        values = ("NULL" if value is None else str(value) for value in row.values())
        table.add_row(sign, *map(Text, values))
    return table
