"""``tidemark test``: runs the case files of gold views in a temporary lake."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spark_jobs.cli.completion import VIEWS_HELP, complete_views
from spark_jobs.errors import LakehouseError
from spark_jobs.names import passed_keys
from spark_jobs.serving.project import current_manifest, views_of
from spark_jobs.settings import Settings, load_settings
from spark_jobs.terminal.tables import FittedTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.graph.manifest import Manifest
    from spark_jobs.testing.run import CaseResult, StepResult


@dataclass(frozen=True)
class Ended:
    """A case file with its result, or with the error that stopped it."""

    name: str
    result: CaseResult | None
    error: LakehouseError | None = None

    @property
    def passed(self) -> bool:
        return self.result is not None and self.result.passed

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object."""
        found = self.result.as_dict() if self.result else {}
        error = self.error.as_dict() if self.error else None
        return {"case": self.name, **passed_keys(passed=self.passed), **found, "error": error}


def run_cases(
    context: typer.Context,
    views: Annotated[
        list[str] | None,
        typer.Argument(
            help=f"{VIEWS_HELP} Default: all with a case.", autocompletion=complete_views
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Run the case files of gold views: input rows, changes, and the expected rows."""
    from spark_jobs.storage.session import QUIET, driver_session
    from spark_jobs.testing.run import FEW_ROWS

    settings = load_settings(context.obj)
    manifest = current_manifest(settings)
    files = selected_cases(settings, manifest, views or [])
    console = Console(stderr=as_json, highlight=False)
    with tempfile.TemporaryDirectory(prefix="tidemark-test-") as directory:
        own = settings.moved_to(Path(directory))
        spark = driver_session(own, "tidemark test", conf={**QUIET, **FEW_ROWS})
        try:
            ended = []
            for one in run_files(files, manifest, own, spark):
                ended.append(one)
                print_case(console, one)
        finally:
            spark.stop()
    if as_json:
        typer.echo(json.dumps([one.as_dict() for one in ended], indent=2, default=str))
    failed = sum(not one.passed for one in ended)
    console.print(f"{len(ended) - failed} of {len(ended)} cases passed")
    if failed:
        raise typer.Exit(1)


def selected_cases(settings: Settings, manifest: Manifest, views: list[str]) -> tuple[Path, ...]:
    """The case files of a selection; a view that is named must have one.

    Raises:
        LakehouseError: see ``views_of`` and ``chosen_cases``.
    """
    from spark_jobs.planning.selection import names_one_view
    from spark_jobs.testing.case_files import case_files, chosen_cases, view_of

    if not views:
        return chosen_cases(settings.project_dir, manifest, None)
    wanted = views_of(settings, manifest, views)
    if named := [one for one in views if names_one_view(one)]:
        chosen_cases(settings.project_dir, manifest, named)
    return tuple(one for one in case_files(settings.project_dir) if view_of(one) in wanted)


def run_files(
    files: tuple[Path, ...], manifest: Manifest, settings: Settings, spark: SparkSession
) -> Iterator[Ended]:
    """Run case files one after another.

    Args:
        files: to run.
        manifest: the project.
        settings: with a temporary state directory; each file gets a lake below it.
        spark: the session for all files.
    """
    from spark_jobs.testing.case_files import read_case
    from spark_jobs.testing.run import prepared

    for file in files:
        try:
            case = read_case(file, manifest)
            own = settings.moved_to(settings.state / file.stem)
            with prepared(case, manifest=manifest, settings=own, session=lambda: spark) as run:
                yield Ended(file.stem, run.run())
        except LakehouseError as error:
            yield Ended(file.stem, None, error)


def print_case(console: Console, ended: Ended) -> None:
    """Print one line about a case, and the differences if it failed."""
    word = Text("passed", style="green") if ended.passed else Text("failed", style="red")
    if ended.error is not None:
        console.print(Text.assemble(word, f" {ended.name}"))
        console.print(ended.error.render(), markup=False, soft_wrap=True)
    elif ended.result is not None:
        steps = ended.result.steps
        console.print(Text.assemble(word, f" {ended.name}, {len(steps)} steps"))
        if not steps[-1].passed:
            console.print(difference_table(steps[-1]))
        elif not ended.passed:
            console.print(f"  {ended.result.verification.detail}")


def difference_table(step: StepResult) -> Table:
    """The rows that differ: - marks expected rows that are missing, + rows not expected."""
    table = FittedTable(title=f"after: {step.step}", numbered=True)
    table.add_column("±")
    rows = [*(("-", row) for row in step.missing), *(("+", row) for row in step.unexpected)]
    for name in rows[0][1]:
        table.add_column(name, overflow="fold")
    for sign, row in rows:
        table.add_row(sign, *("NULL" if value is None else str(value) for value in row.values()))
    return table
