"""Files that no project should have: each is refused at once, with its place and a remedy."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spark_jobs.cli.main import app
from spark_jobs.errors import LakehouseError, ProblemsError
from spark_jobs.graph.compile import compile_project, read_project
from spark_jobs.graph.manifest import Manifest
from spark_jobs.project_files import MOST_BYTES
from spark_jobs.settings import load_settings
from spark_jobs.testing.case_files import read_case
from spark_jobs.testing.silver_case_files import read_silver_case
from tests.golden.declaration_cases import RIGHT, write_project

# In CPU time, as docs/bad-input.md promises; it took less than a tenth of that.
MOST_SECONDS = 1.0
MEGABYTE = 2**20


def bomb() -> str:
    """A few lines of YAML that are some billion values."""
    first = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
    nine = (", ".join([f"*a{at}"] * 9) for at in range(9))
    return first + "".join(f"a{at}: &a{at} [{one}]\n" for at, one in enumerate(nine, 1))


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(100 * MEGABYTE)


NOT_READ: dict[str, Callable[[Path], object]] = {
    "a directory": Path.mkdir,
    "a named pipe": os.mkfifo,
    "a link to a device": lambda path: path.symlink_to("/dev/zero"),
    "a link to nothing": lambda path: path.symlink_to("/nowhere"),
    "a link to itself": lambda path: path.symlink_to(path),
    "a sparse file of 100 MB": huge,
    "30 MB of brackets": lambda path: path.write_text("[" * 30 * MEGABYTE),
    "not UTF-8": lambda path: path.write_bytes(b"format: json\n\xff\xfe\n"),
}
NOT_UNDERSTOOD: dict[str, Callable[[Path], object]] = {
    "as many brackets as fit": lambda path: path.write_text("[" * MOST_BYTES),
    "as many braces as fit": lambda path: path.write_text('{"a":' * (MOST_BYTES // 5)),
    "lists in lists": lambda path: path.write_text("- " * (MOST_BYTES // 2)),
    "NUL bytes": lambda path: path.write_bytes(b"\0" * 1000),
}
YAML_ONLY: dict[str, Callable[[Path], object]] = {
    "a bomb": lambda path: path.write_text(bomb()),
    "an alias of itself": lambda path: path.write_text("a: &a [*a]\n"),
    "a date that is none": lambda path: path.write_text("format: 2026-13-45\n"),
    "a tag that does not fit": lambda path: path.write_text("format: !!int x\n"),
    "a number without end": lambda path: path.write_text(f"format: {'1' * 5000}\n"),
}


def problems_of_project(project: Path, _: str) -> Sequence[LakehouseError]:
    return read_project(project)[1]


def problems_of_settings(project: Path, _: str) -> Sequence[LakehouseError]:
    with pytest.raises(ProblemsError) as caught:
        load_settings(project)
    return caught.value.problems


def problems_of_case(project: Path, file: str) -> Sequence[LakehouseError]:
    with pytest.raises(ProblemsError) as caught:
        read_case(project / file, Manifest(project="p", sources={}, silver={}, gold={}, sinks={}))
    return caught.value.problems


def problems_of_silver_case(project: Path, file: str) -> Sequence[LakehouseError]:
    with pytest.raises(ProblemsError) as caught:
        read_silver_case(
            project / file, Manifest(project="p", sources={}, silver={}, gold={}, sinks={})
        )
    return caught.value.problems


READERS: dict[str, Callable[[Path, str], Sequence[LakehouseError]]] = {
    "sources/more.yml": problems_of_project,
    "tidemark.yml": problems_of_settings,
    "tests/cases/gold/spend.yml": problems_of_case,
    "tests/cases/silver/orders.yml": problems_of_silver_case,
    "sql/silver/more.sql": problems_of_project,
    "sql/gold/more.sql": problems_of_project,
    "expectations/gold/more.json": problems_of_project,
}


@pytest.mark.parametrize(
    ("file", "what"),
    [
        (file, what)
        for file in READERS
        for what in (*NOT_READ, *NOT_UNDERSTOOD, *(YAML_ONLY if file.endswith(".yml") else ()))
    ],
)
def test_a_hostile_file_is_refused_at_once(tmp_path: Path, file: str, what: str) -> None:
    project = write_project(tmp_path / "project", {})
    (project / file).parent.mkdir(parents=True, exist_ok=True)
    ({**NOT_READ, **NOT_UNDERSTOOD, **YAML_ONLY})[what](project / file)
    # Not counted: the right files of the project.
    compile_project(write_project(tmp_path / "right", {}))
    before = time.process_time()
    found = READERS[file](project, file)
    assert time.process_time() - before < MOST_SECONDS
    assert found
    for one in found:
        assert one.location is not None
        assert one.location.file == file
        assert one.hint
        assert len(one.render()) < 600
        if what in NOT_READ:
            assert one.condition == "UNREADABLE_FILE"


def test_fmt_reads_the_files_that_declare_something(tmp_path: Path) -> None:
    """The lock of an editor is a broken link; an ending in capitals declares too."""
    project = write_project(tmp_path, {})
    view = project / "sql" / "gold" / "spend.sql"
    (view.parent / ".#spend.sql").symlink_to("ann@host.123")
    view.write_text(view.read_text().replace("SELECT", "select"))
    view.rename(view.with_suffix(".SQL"))
    result = CliRunner().invoke(app, ["--project", str(project), "fmt"])

    assert result.exit_code == 0, result.exception
    assert "formatted sql/gold/spend.SQL" in result.stdout


@pytest.mark.parametrize("what", NOT_READ)
def test_unreadable_files_are_reported_by_fmt(tmp_path: Path, what: str) -> None:
    project = write_project(tmp_path, {})
    NOT_READ[what](project / "sql/gold/more.sql")
    error = CliRunner().invoke(app, ["--project", str(project), "fmt", "--check"]).exception
    assert isinstance(error, ProblemsError)
    found = [(one.condition, one.location.file) for one in error.problems if one.location]
    assert found == [("UNREADABLE_FILE", "sql/gold/more.sql")]


def test_aliases_that_repeat_little_are_right(tmp_path: Path) -> None:
    text = RIGHT["sources/clicks.yml"].replace("clicks", "more")
    text = text.replace("user_id: BIGINT", "user_id: &number BIGINT, page_id: *number")
    manifest = compile_project(write_project(tmp_path, {"sources/more.yml": text}))
    assert manifest.sources["more"].columns[2].type == "bigint"


def test_a_file_of_the_largest_size_is_read(tmp_path: Path) -> None:
    text = RIGHT["sources/orders.yml"]
    padded = text + "#" * (MOST_BYTES - len(text) - 1) + "\n"
    assert compile_project(write_project(tmp_path, {"sources/orders.yml": padded})).sources
