from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.cli.cases import strays_of
from spark_jobs.errors import ProblemsError
from spark_jobs.graph.manifest import Manifest
from spark_jobs.settings import REPOSITORY, load_settings
from spark_jobs.testing.case_files import chosen_cases, every_case_file, read_case
from spark_jobs.testing.errors import NoCasesError
from tests.shipped import shipped_project

RIGHT = """\
description: Orders by status.
given:
  silver.orders: |
    order_id | status
    11       | placed
then: |
  status | orders
  placed | 1
when:
  - step: it is paid
    update:
      silver.orders: |
        order_id | status
        11       | paid
    then: |
      status | orders
      paid   | 1
"""


@pytest.fixture(scope="module")
def manifest() -> Manifest:
    return shipped_project()


def written(tmp_path: Path, text: str, *, name: str = "orders_by_status.yml") -> Path:
    folder = tmp_path / "tests/cases/gold"
    folder.mkdir(parents=True)
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def test_a_case_is_read(tmp_path: Path, manifest: Manifest) -> None:
    case = read_case(written(tmp_path, RIGHT, name="orders_by_status.paid.yml"), manifest)

    assert (case.name, case.view) == ("orders_by_status.paid", "orders_by_status")
    assert [step.step for step in case.content.when] == ["it is paid"]


VIEW, CLOCK = "orders_by_status.yml", "rolling_engagement_7d.yml"


@pytest.mark.parametrize(
    ("name", "change", "found"),
    [
        pytest.param("other.yml", ("", ""), ("CASE_OF_NO_VIEW", None), id="view"),
        pytest.param(VIEW, ("given:\n  silver", "given:\n  gold"), ("CASE_INPUT", 3), id="given"),
        pytest.param(VIEW, ("      silver", "      gold"), ("CASE_INPUT", 12), id="changed"),
        pytest.param(VIEW, ("update:", "updaet:"), ("UNKNOWN_KEY", 11), id="key of a step"),
        pytest.param(VIEW, ("given:", "givn:"), ("UNKNOWN_KEY", 2), id="key"),
        pytest.param(CLOCK, ("orders", "view_events"), ("CASE_CLOCK", 1), id="clock"),
    ],
)
def test_a_mistake_is_named_with_its_place(
    tmp_path: Path,
    manifest: Manifest,
    name: str,
    change: tuple[str, str],
    found: tuple[str, int | None],
) -> None:
    file = written(tmp_path, RIGHT.replace(*change), name=name)
    with pytest.raises(ProblemsError) as caught:
        read_case(file, manifest)

    problems = caught.value.problems
    assert found in {(one.condition, one.location and one.location.line) for one in problems}
    assert all(one.hint for one in caught.value.problems)


def test_a_view_that_is_named_needs_a_case(tmp_path: Path, manifest: Manifest) -> None:
    file = written(tmp_path, RIGHT)

    assert chosen_cases(tmp_path, manifest, ["gold.orders_by_status"]) == (file,)
    assert chosen_cases(tmp_path, manifest, None) == (file,)
    with pytest.raises(NoCasesError):
        chosen_cases(tmp_path, manifest, ["user_revenue"])


def test_a_file_that_is_not_read_as_a_case_fails(tmp_path: Path, manifest: Manifest) -> None:
    read = written(tmp_path, RIGHT)
    cases = tmp_path / "tests/cases"
    for name in ("gold/user_revenue.yaml", "gold/shop/user_revenue.yml", "user_revenue.yml"):
        (cases / name).parent.mkdir(exist_ok=True)
        (cases / name).write_text(RIGHT, encoding="utf-8")
    # A copy of an editor, and one of a file system.
    (cases / "gold/.#user_revenue.yml").symlink_to("somebody@somewhere:1")
    (cases / "gold/._user_revenue.yml").write_bytes(b"\x00\x05")

    assert every_case_file(tmp_path) == (read,)
    settings = load_settings(REPOSITORY, state_dir=tmp_path).model_copy(
        update={"project_dir": tmp_path}
    )
    found = {one.name: one.error for one in strays_of(settings)}
    assert {
        name: error and (error.condition, str(error.location)) for name, error in found.items()
    } == {
        name: ("MISPLACED_FILE", f"tests/cases/{name}")
        for name in ("gold/user_revenue.yaml", "gold/shop/user_revenue.yml", "user_revenue.yml")
    }


def test_a_clock_without_a_time_is_refused_with_a_form(tmp_path: Path, manifest: Manifest) -> None:
    file = written(tmp_path, f"clock: 2026-03-01\n{RIGHT}")
    with pytest.raises(ProblemsError) as caught:
        read_case(file, manifest)

    [problem] = caught.value.problems
    assert problem.condition == "UNEXPECTED_VALUE"
    assert "2026-03-01 12:00:00" in (problem.hint or "")
