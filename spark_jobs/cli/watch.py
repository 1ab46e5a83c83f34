"""``tidemark watch``: at each save, validate the project and run the cases of what changed."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from rich.console import Console

from spark_jobs.cli.cases import LazySession, print_case, run_files
from spark_jobs.cli.validate import summary
from spark_jobs.errors import LakehouseError, ProblemsError
from spark_jobs.settings import SETTINGS_FILE, Settings, load_settings

if TYPE_CHECKING:
    from watchfiles import Change

    from spark_jobs.graph.manifest import Manifest

# The folders of declarations; changes of other files are ignored.
_FOLDERS = ("sources", "sql", "expectations", "seeds", "profiles", "tests/cases")
# Saves within this time are handled in one round.
_DEBOUNCE_MILLISECONDS = 300


def watch(
    context: typer.Context,
    test: Annotated[bool, typer.Option("--test/--no-test", help="Run case files.")] = True,
) -> None:
    """Validate at each save, and run the case files of changed tables; ends with Ctrl-C."""
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
    """Run a round after each save, until the process ends or ``stop`` is set."""
    from watchfiles import watch as changes_of

    while stop is None or not stop.is_set():
        folders = followed(project_dir)
        # Editors write a new file and rename it, so folders are watched and not files.
        for saved in changes_of(
            *folders,
            watch_filter=declaration_filter(project_dir),
            debounce=_DEBOUNCE_MILLISECONDS,
            stop_event=stop,
            recursive=False,
            ignore_permission_denied=True,
        ):
            paths = {Path(path) for _, path in saved}
            rounds.run(paths)
            # A directory that was made again is another one.
            if followed(project_dir) != folders or not paths.isdisjoint(folders):
                break
        else:
            return


def followed(project_dir: Path) -> list[Path]:
    """The directories to watch: each folder of declarations, and where one can be created.

    The state directory and the lake may be in the project too, and have very many directories.
    """
    parents = {project_dir / one for folder in _FOLDERS for one in Path(folder).parents}
    found = {one.resolve(): one for one in parents if one.is_dir()}
    for folder in _FOLDERS:
        for root, below, _ in os.walk(project_dir / folder, followlinks=True):
            if found.setdefault(Path(root).resolve(), Path(root)) != Path(root):
                # A link to a directory that is watched already.
                below.clear()
    return sorted(found.values())


def declaration_filter(project_dir: Path) -> Callable[[Change, str], bool]:
    """A filter that accepts the files of a project's declarations."""
    folders = [project_dir / one for one in _FOLDERS]

    def declared(_: Change, path: str) -> bool:
        file = Path(path)
        # Editors write drafts and locks next to a file.
        if file.name.startswith(".") or file.name.endswith("~") or file == project_dir:
            return False
        inside = any(file.is_relative_to(one) or one.is_relative_to(file) for one in folders)
        return inside or file == project_dir / SETTINGS_FILE

    return declared


class Validated(NamedTuple):
    """A project without problems, as its files were in one round."""

    settings: Settings
    manifest: Manifest


class Rounds:
    """Runs one round after each save, and compares the tables with those of the previous round.

    The JVM starts with the first case that only Spark can run, and later rounds reuse it.
    """

    def __init__(self, project_dir: Path, directory: Path, console: Console, *, test: bool) -> None:
        self._project_dir = project_dir
        self._directory = directory
        self._console = console
        self._test = test
        self._count = 0
        self._known: dict[str, str] = {}
        self._session: LazySession | None = None

    def validate(self) -> Validated | None:
        """Print all problems, or a summary in one line.

        Returns:
            None if there are problems.
        """
        from spark_jobs.graph.doubts import doubts
        from spark_jobs.storage.compiled import inspect_settings

        try:
            settings = load_settings(self._project_dir)
        except LakehouseError as error:
            self._print(error)
            return None
        manifest, problems = inspect_settings(settings)
        warnings = [] if problems else doubts(manifest, self._project_dir)
        for one in (*problems, *warnings):
            self._print(one)
        if problems:
            self._console.print(ProblemsError(problems).primary)
            return None
        if not self._known:
            self._known = _fingerprints(manifest)
        self._console.print(summary(manifest, warnings=len(warnings)), markup=False)
        return Validated(settings, manifest)

    def run(self, saved: Collection[Path]) -> None:
        """Validate, and run the cases of changed tables and the cases that were saved.

        Args:
            saved: files that were written, renamed or deleted.
        """
        names = sorted(one.name for one in saved)
        self._console.rule(f"saved: {', '.join(names[:3])}{' …' if len(names) > 3 else ''}")
        validated = self.validate()
        if validated is None:
            return
        settings, manifest = validated
        files = self.cases(manifest, saved)
        self._known = _fingerprints(manifest)
        if self._test and files:
            self._count += 1
            temporary = settings.moved_to(self._directory / str(self._count))
            if self._session is None:
                self._session = LazySession(settings.moved_to(self._directory), "tidemark watch")
            for ended in run_files(files, manifest, temporary, self._session):
                print_case(self._console, ended)

    def cases(self, manifest: Manifest, saved: Collection[Path]) -> tuple[Path, ...]:
        """The case files to run: those that were saved, and those of changed tables.

        A view has changed if its file was saved, or if its fingerprint differs from the last valid
        round, because of a macro, a variable or an upstream type. A silver table has changed if its
        file or its source's was saved, or if the definition of its stream differs.
        """
        from spark_jobs.testing.case_files import every_case_file, table_of

        now = _fingerprints(manifest)
        changed = {
            table
            for table, files in _files(manifest)
            if self._known.get(table) != now[table]
            or any(self._project_dir / one in saved for one in files)
        }
        files = every_case_file(self._project_dir)
        return tuple(one for one in files if table_of(one) in changed or one in saved)

    def close(self) -> None:
        """Stop the JVM if it was started."""
        if self._session is not None:
            self._session.close()

    def _print(self, error: LakehouseError) -> None:
        self._console.print(error.render(), markup=False)


def _files(manifest: Manifest) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Views and silver tables, each with the files that declare it."""
    for view in manifest.gold.values():
        yield str(view.table_name), (view.file,)
    for table in manifest.silver.values():
        yield str(table.table_name), (table.file, manifest.sources[table.source].file)


def _fingerprints(manifest: Manifest) -> dict[str, str]:
    """Text by table that differs if its rows may differ."""
    from spark_jobs.deploy.streams import silver_definition

    found = {str(entry.table_name): entry.fingerprint for entry in manifest.gold.values()}
    for table in manifest.silver.values():
        source = manifest.sources[table.source]
        found[str(table.table_name)] = silver_definition(source, table)
    return found
