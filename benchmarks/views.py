"""``make bench-views``: what commands and Airflow cost in a project with many views.

This is the cost of declarations, not of refreshes: the tables have no rows or few.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.ivm import PAPERS, RESULTS
from benchmarks.many_dags import AirflowCost, airflow_cost
from benchmarks.many_views import TABLES, write_project
from benchmarks.streams.running import BenchmarkStuckError, own_settings
from spark_jobs.cli.plan import CHANGES
from spark_jobs.sections import SparkSettings, StreamSettings
from spark_jobs.settings import Settings

NAME = "views"
COMMANDS = {
    "`validate`, the first time": ("validate",),
    "`validate`, nothing changed": ("validate",),
    "`validate`, one view changed": ("validate",),
    "`compile`": ("compile",),
    "`plan`": ("plan",),
    "`explain --all`": ("explain", "--all"),
    "`status`": ("status",),
}
_CHANGED = "`validate`, one view changed"


@dataclass(frozen=True)
class Measured:
    """A project of some size.

    Attributes:
        views: their number.
        commands: CPU-seconds by command.
        manifest_bytes: size of the manifest.
        airflow: None if it was not measured.
        load: the machine's load average over the last minute, at the end.
    """

    views: int
    commands: dict[str, float]
    manifest_bytes: int
    airflow: AirflowCost | None
    load: float


@contextmanager
def project(views: int) -> Iterator[Settings]:
    """A project in a folder of its own, with free ports and an empty state directory."""
    with tempfile.TemporaryDirectory(prefix="bench-views-") as name:
        folder = Path(name)
        # PostgreSQL's user must be able to traverse the directory.
        folder.chmod(0o755)
        write_project(folder, views)
        settings = own_settings(folder, SparkSettings(), StreamSettings())
        settings.state.mkdir()
        yield settings


def command_cpu(settings: Settings, words: tuple[str, ...]) -> float:
    """CPU-seconds of a command of its own process.

    Raises:
        BenchmarkStuckError: it failed; with its errors.
    """
    program = [str(Path(sys.executable).parent / "tidemark"), "--project"]
    before = _children_cpu()
    ended = subprocess.run(
        [*program, str(settings.project_dir), *words],
        env={**os.environ, "TIDEMARK_STATE_DIR": str(settings.state)},
        capture_output=True,
        text=True,
        check=False,
    )
    # A plan says by its status that there is something to deploy.
    if ended.returncode not in (0, CHANGES):
        raise BenchmarkStuckError(f"{' '.join(words)}: {ended.stderr[-500:]}")
    return _children_cpu() - before


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def commands_cpu(settings: Settings, say: Callable[[str], None]) -> dict[str, float]:
    """CPU-seconds of each of ``COMMANDS``, one after the other."""
    found = {}
    for title, words in COMMANDS.items():
        if title == _CHANGED:
            file = settings.project_dir / "sql/gold/v0.sql"
            file.write_text(file.read_text().replace("COUNT(*)", "COUNT(a.id)"))
        found[title] = command_cpu(settings, words)
        say(f"{title}: {found[title]:.1f} CPU-seconds")
    return found


def measure(views: int, say: Callable[[str], None], *, airflow: bool) -> Measured:
    """Measure a project of so many views."""
    say(f"{views:,} views")
    with project(views) as settings:
        commands = commands_cpu(settings, say)
        return Measured(
            views=views,
            commands={title: round(cpu, 1) for title, cpu in commands.items()},
            manifest_bytes=settings.manifest_file.stat().st_size,
            airflow=airflow_cost(settings, say) if airflow else None,
            load=round(os.getloadavg()[0], 1),
        )


def page(small: Measured, large: Measured) -> str:
    """The report, as Markdown."""
    more = large.views - small.views
    rows = [(title, small.commands[title], large.commands[title]) for title in COMMANDS]
    if (few := small.airflow) and (many := large.airflow):
        rows += [
            ("Airflow reads the DAG files for the first time", few.first, many.first),
            ("Airflow reads them again", few.later, many.later),
            ("a minute of Airflow at rest", few.rest, many.rest),
            ("a run that finds nothing to do", few.run, many.run),
        ]
    lines = "\n".join(
        f"| {title} | {one:.1f} | {other:.1f} | {1000 * (other - one) / more:.1f} |"
        for title, one, other in rows
    )
    return f"""\
# Many views

Written by `make bench-views`: projects with {small.views:,} and with {large.views:,} views over
{TABLES} captured tables. Half of the views aggregate one table; the others join three
tables, keep the best rows of groups, or join two views. The tables have no rows or few:
this is the cost of the declarations. The machine's load was {small.load:g} and {large.load:g}.

CPU-seconds, and milliseconds for each view more:

| | {small.views:,} views | {large.views:,} views | ms a view |
|---|---:|---:|---:|
{lines}

The manifest has {large.manifest_bytes / 1e6:.1f} MB.
"""


def main(
    *,
    small: Annotated[int, typer.Option(min=4, help="Views of the small project.")] = 100,
    large: Annotated[int, typer.Option(min=8, help="Views of the large project.")] = 1000,
    airflow: Annotated[bool, typer.Option(help="Measure Airflow, too.")] = True,
    results: Annotated[Path, typer.Option(help="Where the JSON goes.")] = RESULTS,
    papers: Annotated[Path, typer.Option(help="Where the page goes.")] = PAPERS,
) -> None:
    """Measure commands and Airflow in projects with few and with many views."""
    console = Console(stderr=True)
    found = [measure(views, console.print, airflow=airflow) for views in (small, large)]
    text = json.dumps([asdict(one) for one in found], indent=2) + "\n"
    (results / f"{NAME}.json").write_text(text)
    (papers / f"{NAME}.md").write_text(page(*found))
    console.print(page(*found), markup=False)


if __name__ == "__main__":
    typer.run(main)
