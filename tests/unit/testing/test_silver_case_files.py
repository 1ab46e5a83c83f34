"""Case files of silver tables: what is read, and all mistakes at once with their places."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from spark_jobs.cli.cases import print_case, selected_cases
from spark_jobs.errors import ProblemsError
from spark_jobs.gold.base.errors import ViewUnknownError
from spark_jobs.graph.manifest import Manifest
from spark_jobs.names import Disposition
from spark_jobs.planning.errors import NothingSelectedError
from spark_jobs.settings import REPOSITORY, load_settings
from spark_jobs.silver.errors import SilverTableUnknownError
from spark_jobs.testing.case_files import every_case_file, table_of
from spark_jobs.testing.ended import Ended
from spark_jobs.testing.errors import NoCasesError
from spark_jobs.testing.silver_case_files import SilverCase, read_silver_case
from spark_jobs.testing.silver_results import (
    RecordDifference,
    RecordEnd,
    SilverCaseResult,
    SilverStepResult,
)
from tests.shipped import shipped_project

RIGHT = """\
description: The newest change wins.
clock: 2026-03-01 12:00:00
records:
  - {op: c, after: {title_id: 1, name: Dunes}}
  - op: u
    position: 9
    after: {title_id: 1, name: Dune}
then: |
  title_id | name | kind | genre | duration_seconds | updated_at
  1        | Dune | NULL | NULL  | NULL             | NULL
when:
  - step: an old change and a broken one
    clock: 2026-03-02 12:00:00
    records:
      - {op: u, position: 3, after: {title_id: 1}, disposition: superseded}
      - {op: u, after: {title_id: 1, duration_seconds: long}, reason: TYPE_MISMATCH}
    then: |
      title_id | name | kind | genre | duration_seconds | updated_at
      1        | Dune | NULL | NULL  | NULL             | NULL
"""


@pytest.fixture(scope="module")
def shipped() -> Manifest:
    return shipped_project()


def written(tmp_path: Path, text: str, *, name: str = "titles.yml") -> Path:
    folder = tmp_path / "tests/cases/silver"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def test_a_case_is_read(tmp_path: Path, shipped: Manifest) -> None:
    case = read_silver_case(written(tmp_path, RIGHT, name="titles.late.yml"), shipped)
    assert (case.name, case.table) == ("titles.late", "titles")
    first, second = case.steps
    # A change without a position comes after the newest so far.
    positions = [one.sent.position for step in case.steps for one in step.records]
    assert positions == [1, 9, 3, 10]
    assert (second.clock - first.clock).days == 1
    dispositions = [one.disposition for step in case.steps for one in step.records]
    expected = [None, None, Disposition.SUPERSEDED, Disposition.QUARANTINED]
    assert dispositions == expected
    assert [one.location.line for one in first.records] == [4, 5]


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("op: u\n", "op: x\n", [("UNEXPECTED_VALUE", 5)]),
        ("op: u\n", "opp: u\n", [("UNKNOWN_KEY", 5)]),
        ("records:\n  -", "record:\n  -", [("UNKNOWN_KEY", 3), ("MISSING_KEY", 1)]),
        ("superseded", "late", [("UNEXPECTED_VALUE", 15)]),
        ("TYPE_MISMATCH", "TYPE_MISMATCHED", [("UNEXPECTED_VALUE", 16)]),
        ("superseded", "superseded, detail: x", [("CASE_RECORD", 15)]),
        ("superseded", "superseded, reason: OVERSIZED", [("CASE_RECORD", 15)]),
        ("{title_id: 1, name: Dunes}", "{name: Dunes}", [("CASE_RECORD", 4)]),
        ("  title_id | name |", "  title_id | named |", [("CASE_TABLE", 8), ("CASE_TABLE", 17)]),
        ("clock: 2026-03-01 12:00:00\n", "refused: BATCH_HELD\n", [("CASE_AFTER_REFUSAL", 12)]),
        ("1        | Dune", "one      | Dune", [("CASE_TABLE", 8), ("CASE_TABLE", 17)]),
    ],
)
def test_all_mistakes_are_named_with_their_places(
    tmp_path: Path, shipped: Manifest, old: str, new: str, found: list[tuple[str, int]]
) -> None:
    assert old in RIGHT
    with pytest.raises(ProblemsError) as caught:
        read_silver_case(written(tmp_path, RIGHT.replace(old, new)), shipped)
    problems = caught.value.problems
    places = {(one.condition, one.location and one.location.line) for one in problems}
    assert set(found) <= places
    assert len(problems) == len(found)
    assert all(one.hint for one in problems)


def test_mistakes_of_all_kinds_come_at_once(tmp_path: Path, shipped: Manifest) -> None:
    wrong = RIGHT.replace("{title_id: 1, name: Dunes}", "{name: Dunes}")
    wrong = wrong.replace("op: u\n", "op: d\n").replace("| genre |", "| gender |")
    with pytest.raises(ProblemsError) as caught:
        read_silver_case(written(tmp_path, wrong), shipped)
    conditions = [one.condition for one in caught.value.problems]
    assert conditions == ["CASE_RECORD", "CASE_RECORD", "CASE_TABLE", "CASE_TABLE"]


def test_a_case_names_a_silver_table(tmp_path: Path, shipped: Manifest) -> None:
    with pytest.raises(ProblemsError) as caught:
        read_silver_case(written(tmp_path, RIGHT, name="titlesx.yml"), shipped)
    [problem] = caught.value.problems
    assert (problem.condition, problem.hint) == ("CASE_OF_NO_TABLE", 'Did you mean "titles"?')


def test_cases_are_selected_by_table(tmp_path: Path, shipped: Manifest) -> None:
    silver, clicks = written(tmp_path, RIGHT), written(tmp_path, RIGHT, name="click_events.yml")
    folder = tmp_path / "tests/cases/gold"
    folder.mkdir()
    gold = folder / "viewership_summary.yml"
    gold.write_text("description: A case.\n")
    settings = load_settings(REPOSITORY, state_dir=tmp_path).model_copy(
        update={"project_dir": tmp_path}
    )

    def chosen(*texts: str) -> set[str]:
        return {table_of(file) for file in selected_cases(settings, shipped, list(texts))}

    assert every_case_file(tmp_path) == (gold, clicks, silver)
    assert chosen() == {"gold.viewership_summary", "silver.titles", "silver.click_events"}
    assert chosen("silver.titles") == {"silver.titles"}
    assert chosen("silver.titles+") == {"silver.titles", "gold.viewership_summary"}
    assert chosen("+viewership_summary") == {"silver.titles", "gold.viewership_summary"}
    assert chosen("silver.t*", "viewership_summary") == {"silver.titles", "gold.viewership_summary"}
    assert chosen("tag:shop") == {"silver.click_events"}
    for text, error in {
        "silver.users": NoCasesError,
        "silver.nothing": SilverTableUnknownError,
        "titles": ViewUnknownError,
        "bronze.titles": NothingSelectedError,
    }.items():
        with pytest.raises(error):
            chosen(text)


@pytest.fixture
def case(tmp_path: Path, shipped: Manifest) -> SilverCase:
    return read_silver_case(written(tmp_path, RIGHT), shipped)


def test_a_record_ends_as_the_case_says(case: SilverCase) -> None:
    some, _, late, broken = [one for step in case.steps for one in step.records]
    rejected = RecordEnd(Disposition.QUARANTINED, "TYPE_MISMATCH", "duration_seconds")
    assert RecordEnd(Disposition.DUPLICATE).meets(some)
    assert not rejected.meets(some)
    assert not RecordEnd(None).meets(late)
    assert rejected.meets(broken)
    assert not RecordEnd(Disposition.QUARANTINED, "KEY_MISSING", "title_id").meets(broken)
    assert not RecordEnd(Disposition.APPLIED).meets(broken)


def printed(ended: Ended) -> str:
    text = io.StringIO()
    print_case(Console(file=text, width=120), ended)
    return text.getvalue()


def test_rows_and_records_that_differ_are_shown(case: SilverCase) -> None:
    late, broken = case.steps[1].records
    records = (
        RecordDifference.of(late, RecordEnd(None)),
        RecordDifference.of(broken, RecordEnd(Disposition.APPLIED)),
    )
    row = {"title_id": 1, "name": None}
    step = SilverStepResult("a step", (row,), (row | {"name": "[b]"},), records, None)
    result = SilverCaseResult(case, (step,))
    shown = printed(Ended(name="silver.titles", result=result, engine="spark"))
    lines = [line.replace("│", " ").split() for line in shown.splitlines()]
    assert shown.startswith("failed silver.titles, 1 step, by Spark\n")
    assert ["-", "1", "NULL"] in lines
    assert ["+", "1", "[b]"] in lines
    place = "tests/cases/silver/titles.yml"
    assert shown.splitlines()[1:5] == [
        f"{place}:15:9: expected superseded, found not processed",
        '  u {"title_id": 1} at 3',
        f"{place}:16:9: expected quarantined TYPE_MISMATCH, found applied",
        '  u {"title_id": 1} at 10',
    ]
    told = Ended(name="silver.titles", result=result).as_dict()
    assert told["table"] == "silver.titles"
    assert told["steps"][0]["records"][1]["found"] == "applied"
    assert told["passed"] is False


def test_a_refusal_is_shown(case: SilverCase) -> None:
    refused = SilverStepResult("a step", (), (), (), "the batch is applied, not BATCH_HELD")
    result = SilverCaseResult(case, (refused,))
    shown = printed(Ended(name="silver.titles", result=result, engine="spark"))
    assert shown.splitlines()[1:] == ["the batch is applied, not BATCH_HELD"]
