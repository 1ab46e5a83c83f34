"""Case files of gold views: which there are, and what each of them says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from spark_jobs.definitions.checked import checked
from spark_jobs.definitions.marked import Places, read_marked
from spark_jobs.definitions.models import CaseFile, StepFile
from spark_jobs.errors import LakehouseError, Location, ProblemsError
from spark_jobs.gold.errors import ViewUnknownError
from spark_jobs.graph.manifest import GoldEntry, Manifest
from spark_jobs.project_files import read_text
from spark_jobs.testing.errors import (
    CaseClockError,
    CaseInputError,
    CaseOfNoViewError,
    NoCasesError,
)

CASES = "tests/cases/gold"
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


def case_files(project_dir: Path) -> tuple[Path, ...]:
    """The project's case files, sorted."""
    return tuple(sorted((project_dir / CASES).glob("*.yml")))


def chosen_cases(
    project_dir: Path, manifest: Manifest, views: Sequence[str] | None
) -> tuple[Path, ...]:
    """The case files of some views, or of all.

    Raises:
        ViewUnknownError: a name that no view has.
        NoCasesError: a view that is named has none.
    """
    files = case_files(project_dir)
    wanted = [one.removeprefix("gold.") for one in views or ()]
    for view in wanted:
        if view not in manifest.gold:
            raise ViewUnknownError(view, sorted(manifest.gold))
        if all(view_of(file) != view for file in files):
            raise NoCasesError(view, CASES)
    return tuple(file for file in files if not wanted or view_of(file) in wanted)


def view_of(file: Path) -> str:
    """The view whose case a file holds.

    >>> view_of(Path("failed_logins.late.yml"))
    'failed_logins'
    """
    return file.name.partition(".")[0]


def read_case(file: Path, manifest: Manifest) -> Case:
    """Read a case and check what can be told without running it.

    Raises:
        ProblemsError: all that does not fit.
    """
    name, view = f"{CASES}/{file.name}", view_of(file)
    try:
        marked = read_marked(read_text(file, name), name)
    except LakehouseError as error:
        raise ProblemsError([error]) from error
    content, problems = checked(marked, CaseFile, f'case "{file.stem}"')
    entry = manifest.gold.get(view)
    if entry is None:
        problems.append(CaseOfNoViewError(view, sorted(manifest.gold), location=Location(name)))
    elif content is not None:
        problems += _check(content, entry, marked.places)
    if problems or content is None:
        raise ProblemsError(problems)
    return Case(file.stem, view, content, marked.places)


def changes_of(step: StepFile) -> dict[str, dict[str, str]]:
    """The rows of a step by table, for each kind of change, in the order of their effect."""
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
