from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

from spark_jobs.definitions import errors as definition_errors
from spark_jobs.definitions import suite_errors
from spark_jobs.errors import LakehouseError, ProblemsError
from spark_jobs.graph import avro, key_errors, syntax_errors, table_layout
from spark_jobs.graph import errors as graph_errors
from spark_jobs.graph.compile import compile_project
from tests.golden.declaration_cases import CASES, Case, write_project

GOLDEN = Path(__file__).with_name("declaration_problems.txt")


def no_tables(location: str) -> dict[str, str]:
    raise FileNotFoundError(f"no Delta table lies at {location}")


def problems_of(directory: Path, case: Case) -> tuple[LakehouseError, ...]:
    project = write_project(directory, case.files)
    with pytest.raises(ProblemsError) as caught:
        compile_project(project, delta_schema=no_tables, limits=case.limits)
    return caught.value.problems


def section(directory: Path, case: Case, problems: Sequence[LakehouseError]) -> str:
    """What the golden file says of a case."""
    messages = "\n".join(problem.render() for problem in problems)
    return f"## {case.name}\n{messages.replace(str(directory), 'PROJECT')}\n"


@cache
def reviewed() -> list[str]:
    """The sections of the golden file."""
    return re.split(r"\n(?=## )", GOLDEN.read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_mistake_is_named_with_its_place(tmp_path: Path, case: Case) -> None:
    problems = problems_of(tmp_path, case)

    assert {problem.condition for problem in problems} == {case.condition}
    for problem in problems:
        assert problem.hint or problem.detail
        if case.condition != "EMPTY_PROJECT":
            assert problem.location is not None
            assert (tmp_path / problem.location.file).exists()
    if not os.environ.get("REWRITE"):
        assert section(tmp_path, case, problems) in reviewed()


def test_the_golden_file_has_exactly_these_cases(tmp_path: Path) -> None:
    if os.environ.get("REWRITE"):
        sections = []
        for case in CASES:
            directory = tmp_path / case.name
            directory.mkdir()
            sections.append(section(directory, case, problems_of(directory, case)))
        GOLDEN.write_text("\n".join(sections), encoding="utf-8")
    found = re.findall(r"^## (.+)$", GOLDEN.read_text(encoding="utf-8"), re.MULTILINE)
    assert found == [case.name for case in CASES]


def conditions() -> Iterator[str]:
    graph = (graph_errors, key_errors, syntax_errors, avro, table_layout)
    for module in (definition_errors, suite_errors, *graph):
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, LakehouseError):
                yield value.condition


def test_every_condition_has_a_case() -> None:
    shown = {case.condition for case in CASES}

    assert set(conditions()) - {LakehouseError.condition} <= shown
