"""Finds case files, and reads those of gold views."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from spark_jobs.definitions.checked import Model, checked
from spark_jobs.definitions.errors import MisplacedFileError
from spark_jobs.definitions.marked import Places, read_marked
from spark_jobs.definitions.models import CaseFile, StepFile
from spark_jobs.errors import LakehouseError, Location, ProblemsError
from spark_jobs.gold.base.errors import ViewUnknownError
from spark_jobs.graph.manifest import GoldEntry, Manifest
from spark_jobs.names import Layer
from spark_jobs.project_files import read_text
from spark_jobs.silver.errors import SilverTableUnknownError
from spark_jobs.testing.errors import (
    CaseClockError,
    CaseInputError,
    CaseOfNoViewError,
    NoCasesError,
)

_TOP = "tests/cases"
CASES = f"{_TOP}/gold"
SILVER_CASES = f"{_TOP}/silver"
_YAML = (".yml", ".yaml")
# The clock of views that do not read it.
ANY_TIME = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Case:
    """A case of a view.

    Attributes:
        name: the file's, without its ending.
        places: of the file's keys and values, for messages.
    """

    name: str
    view: str
    content: CaseFile
    places: Places


def case_files(project_dir: Path, layer: Layer = Layer.GOLD) -> tuple[Path, ...]:
    """The project's case files of gold views, or of silver tables, sorted."""
    folder = SILVER_CASES if layer is Layer.SILVER else CASES
    return tuple(sorted(one for one in (project_dir / folder).glob("*.yml") if _visible(one)))


def every_case_file(project_dir: Path) -> tuple[Path, ...]:
    """The project's case files; those of views come first, because most need no JVM."""
    return case_files(project_dir) + case_files(project_dir, Layer.SILVER)


def stray_cases(project_dir: Path) -> Iterator[tuple[str, LakehouseError]]:
    """YAML files below ``tests/cases`` that are not read as cases: path from there, and why."""
    read = frozenset(every_case_file(project_dir))
    top = project_dir / _TOP
    for file in sorted(top.rglob("*")):
        stray = file.suffix.lower() in _YAML and file not in read and file.is_file()
        inside = file.relative_to(top)
        if stray and all(_visible(Path(part)) for part in inside.parts):
            place = Location(f"{_TOP}/{inside.as_posix()}")
            hint = f"Name it {CASES}/VIEW.yml or {SILVER_CASES}/TABLE.yml."
            yield inside.as_posix(), MisplacedFileError(hint, location=place)


def _visible(file: Path) -> bool:
    """Whether a file is not hidden, as copies of editors are."""
    return not file.name.startswith(".")


def chosen_cases(
    project_dir: Path, manifest: Manifest, tables: Sequence[str] | None
) -> tuple[Path, ...]:
    """The case files of some tables, or of all.

    Args:
        project_dir: the project.
        manifest: the same, compiled.
        tables: silver tables as ``silver.NAME``, views as ``gold.NAME`` or ``NAME``.

    Raises:
        ViewUnknownError: there is no such view.
        SilverTableUnknownError: there is no such silver table.
        NoCasesError: one of the tables has no case.
    """
    files = every_case_file(project_dir)
    wanted = [one if "." in one else f"gold.{one}" for one in tables or ()]
    for table in wanted:
        layer, _, name = table.partition(".")
        if layer == Layer.SILVER and name not in manifest.silver:
            raise SilverTableUnknownError(name, sorted(manifest.silver))
        if layer == Layer.GOLD and name not in manifest.gold:
            raise ViewUnknownError(name, sorted(manifest.gold))
        if all(table_of(file) != table for file in files):
            raise NoCasesError(table)
    return tuple(file for file in files if not wanted or table_of(file) in wanted)


def table_of(file: Path) -> str:
    """The table of a case file, with its layer.

    >>> table_of(Path("tests/cases/silver/orders.late.yml"))
    'silver.orders'
    """
    return f"{file.parent.name}.{view_of(file)}"


def view_of(file: Path) -> str:
    """The view of a case file.

    >>> view_of(Path("failed_logins.late.yml"))
    'failed_logins'
    """
    return file.name.partition(".")[0]


def read_case(file: Path, manifest: Manifest) -> Case:
    """Read a case and check what can be checked without running it.

    Raises:
        ProblemsError: all problems of the file.
    """
    name, view = f"{CASES}/{file.name}", view_of(file)
    content, places, problems = read_content(file, name, CaseFile)
    entry = manifest.gold.get(view)
    if entry is None:
        problems.append(CaseOfNoViewError(view, sorted(manifest.gold), location=Location(name)))
    elif content is not None:
        problems += _check(content, entry, places)
    if problems or content is None:
        raise ProblemsError(problems)
    return Case(file.stem, view, content, places)


def read_content(
    file: Path, name: str, model: type[Model]
) -> tuple[Model | None, Places, list[LakehouseError]]:
    """A case file as its model, the places of its parts, and its problems.

    Args:
        file: the case file.
        name: its path in the project, for messages.
        model: the model of the file.

    Returns:
        None as the content if there are problems.

    Raises:
        ProblemsError: it cannot be read, or it is not YAML.
    """
    try:
        marked = read_marked(read_text(file, name), name)
    except LakehouseError as error:
        raise ProblemsError([error]) from error
    content, problems = checked(marked, model, f'case "{file.stem}"')
    return content, marked.places, problems


def changes_of(step: StepFile) -> dict[str, dict[str, str]]:
    """The rows of a step as text, by kind of change and table, in the order of their effect."""
    return {"delete": step.delete, "update": step.update, "insert": step.insert}


def _check(content: CaseFile, entry: GoldEntry, places: Places) -> Iterator[LakehouseError]:
    if entry.reads_clock and content.clock is None:
        yield CaseClockError(entry.name, location=places.of())
    named: list[tuple[str | int, ...]] = [("given", table) for table in content.given]
    for at, step in enumerate(content.when):
        for change, tables in changes_of(step).items():
            named += [("when", at, change, table) for table in tables]
    for path in named:
        if path[-1] not in entry.inputs:
            yield CaseInputError(str(path[-1]), entry.inputs, location=places.of(*path))
