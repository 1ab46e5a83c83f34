"""``tidemark watch``: check the project, and run the cases of what changed, at each save."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Collection
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from spark_jobs.cli.cases import run_files, tell, thrown_away
from spark_jobs.cli.validate import summary
from spark_jobs.errors import LakehouseError, ProblemsError
from spark_jobs.settings import SETTINGS_FILE, Settings, load_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from watchfiles import Change

    from spark_jobs.graph.manifest import Manifest

# What declares something; everything else may change as it likes.
_FOLDERS = ("sources", "sql", "expectations", "seeds", "profiles", "tests/cases")
# Saves that come within so many milliseconds are one.
_TOGETHER = 300


def watch(
    context: typer.Context,
    test: Annotated[
        bool, typer.Option("--test/--no-test", help="Run case files, which takes a JVM.")
    ] = True,
) -> None:
    """Validate at each save, and run the case files of the views that changed; ends with Ctrl-C."""
    project_dir = load_settings(context.obj).project_dir
    console = Console(highlight=False, soft_wrap=True)
    with tempfile.TemporaryDirectory(prefix="tidemark-watch-") as directory:
        rounds = Rounds(project_dir, Path(directory), console, test=test)
        try:
            rounds.validate()
            console.print(f"Watching {project_dir}; Ctrl-C ends it.", markup=False)
            follow(project_dir, rounds)
        finally:
            rounds.close()


def follow(project_dir: Path, rounds: Rounds, *, stop: threading.Event | None = None) -> None:
    """Run a round for each save, until the process or ``stop`` ends it."""
    from watchfiles import watch as changes_of

    # Editors write aside and rename, so folders are watched and not files.
    declared = declares(project_dir)
    for saved in changes_of(
        project_dir, watch_filter=declared, debounce=_TOGETHER, stop_event=stop
    ):
        rounds.run({Path(path) for _, path in saved})


def declares(project_dir: Path) -> Callable[[Change, str], bool]:
    """A filter of files: those that are part of a project's declarations."""
    folders = [project_dir / one for one in _FOLDERS]

    def declared(_: Change, path: str) -> bool:
        file = Path(path)
        # Editors keep drafts and locks beside a file.
        if file.name.startswith(".") or file.name.endswith("~"):
            return False
        inside = any(file.is_relative_to(one) for one in folders)
        return inside or file == project_dir / SETTINGS_FILE

    return declared


class Rounds:
    """One round for each save; it remembers what the views were before.

    The JVM starts with the first case that runs, and serves the rounds after it.
    """

    def __init__(self, project_dir: Path, directory: Path, console: Console, *, test: bool) -> None:
        self._project_dir = project_dir
        self._directory = directory
        self._console = console
        self._test = test
        self._count = 0
        self._known: dict[str, str] = {}

    def validate(self) -> Manifest | None:
        """Print what is wrong, or in one line what is right.

        Returns:
            the manifest; None where there are problems.
        """
        from spark_jobs.graph.doubts import doubts
        from spark_jobs.storage.compiled import inspect_settings

        try:
            settings = load_settings(self._project_dir)
        except LakehouseError as error:
            self._tell(error)
            return None
        manifest, problems = inspect_settings(settings)
        warnings = [] if problems else doubts(manifest, self._project_dir)
        for one in (*problems, *warnings):
            self._tell(one)
        if problems:
            self._console.print(ProblemsError(problems).primary)
            return None
        if not self._known:
            self._known = _fingerprints(manifest)
        self._console.print(summary(manifest, warnings=len(warnings)), markup=False)
        return manifest

    def run(self, saved: Collection[Path]) -> None:
        """Validate, and run the cases of the views that mean something else, or whose case changed.

        Args:
            saved: files that were written, renamed or deleted.
        """
        names = sorted(one.name for one in saved)
        self._console.rule(f"saved: {', '.join(names[:3])}{' …' if len(names) > 3 else ''}")
        manifest = self.validate()
        if manifest is None:
            return
        files = self.cases(manifest, saved)
        self._known = _fingerprints(manifest)
        if self._test and files:
            self._count += 1
            settings = thrown_away(
                load_settings(self._project_dir), self._directory / str(self._count)
            )
            for ended in run_files(files, manifest, settings, self._spark):
                tell(self._console, ended)

    def cases(self, manifest: Manifest, saved: Collection[Path]) -> tuple[Path, ...]:
        """The case files to run: those that were saved, and those of views that changed.

        A view changed where its file was saved, or where it means something else since the last
        round without problems: by a macro, a variable or a type above it.
        """
        from spark_jobs.testing.case_files import case_files, view_of

        now = _fingerprints(manifest)
        changed = {
            view
            for view, entry in manifest.gold.items()
            if self._known.get(view) != now[view] or self._project_dir / entry.file in saved
        }
        files = case_files(self._project_dir)
        return tuple(one for one in files if view_of(one) in changed or one in saved)

    def close(self) -> None:
        """End the JVM, where one was started."""
        if "_spark" in vars(self):
            self._spark.stop()

    @cached_property
    def _spark(self) -> SparkSession:
        from spark_jobs.storage.session import QUIET, driver_session
        from spark_jobs.testing.run import FEW_ROWS

        settings: Settings = thrown_away(load_settings(self._project_dir), self._directory)
        return driver_session(settings, "tidemark watch", conf={**QUIET, **FEW_ROWS})

    def _tell(self, error: LakehouseError) -> None:
        self._console.print(error.render(), markup=False)


def _fingerprints(manifest: Manifest) -> dict[str, str]:
    return {name: entry.fingerprint for name, entry in manifest.gold.items()}
