"""``tidemark source skipped`` answers the changes that somebody saw, and no others."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from spark_jobs.cli.main import app
from spark_jobs.settings import load_settings
from spark_jobs.stack.connect import skipped_file
from spark_jobs.stack.errors import ChangeNotSkippedError
from spark_jobs.stack.skipped import unanswered
from tests.golden.declaration_cases import write_project

RUN = ("--run", "--reason", "the rows were written again")
Skipped = Callable[..., Result]


def line(position: int) -> str:
    """As Debezium notes it; its position is 0/N in hexadecimal."""
    offset = f"{{messageType=INSERT, lsn={position}, txId=759}}"
    at = f"2026-11-23T05:25:54.{position:03d}Z"
    return f"{at} Error while processing event at offset {offset} java.lang.NumberFormatException\n"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    found = write_project(tmp_path / "project", {})
    log = skipped_file(load_settings(found))
    log.parent.mkdir(parents=True)
    log.write_text("".join(map(line, (10, 11, 11, 12))))
    return found


@pytest.fixture
def tidemark(root: Path) -> Skipped:
    def run(*words: str) -> Result:
        line = ["--project", str(root), "source", "skipped", *words]
        return CliRunner().invoke(app, line, catch_exceptions=False)

    return run


def waiting(root: Path) -> list[str]:
    return [one.lsn for one in unanswered(load_settings(root))]


def test_the_list_says_how_to_answer_it(tidemark: Skipped, root: Path) -> None:
    shown = tidemark().stdout
    assert all(position in shown for position in ("0/A", "0/B", "0/C"))
    assert "tidemark source skipped --run --through 0/C --reason" in shown
    assert len(waiting(root)) == 4


def test_only_changes_up_to_the_named_one_are_answered(tidemark: Skipped, root: Path) -> None:
    answered = tidemark(*RUN, "--through", "0/b").stdout
    assert "Changes that are answered now: 3" in answered
    assert waiting(root) == ["0/C"]


def test_the_command_shows_what_it_answers(tidemark: Skipped, root: Path) -> None:
    answered = tidemark(*RUN).stdout
    assert "0/C" in answered
    assert "Changes that are answered now: 4" in answered
    assert waiting(root) == []
    assert "Changes that are answered now: 0" in tidemark(*RUN).stdout
    assert tidemark().stdout == "The connector left out no change.\n"


def test_the_changes_for_programs(tidemark: Skipped) -> None:
    shown = json.loads(tidemark("--json").stdout)
    assert [one["position"] for one in shown] == ["0/A", "0/B", "0/B", "0/C"]
    assert shown[0] == {
        "at": "2026-11-23T05:25:54.010000+00:00",
        "position": "0/A",
        "operation": "INSERT",
        "transaction": "759",
        "committed_at": None,
        "cause": "java.lang.NumberFormatException",
        "answered": False,
    }
    answered = json.loads(tidemark(*RUN, "--through", "0/B", "--json").stdout)
    assert [one["answered"] for one in answered] == [True, True, True]
    assert len(json.loads(tidemark("--json").stdout)) == 1
    tidemark(*RUN)
    assert json.loads(tidemark("--json").stdout) == []


@pytest.mark.parametrize("position", ["0/D", "", "last", "0/ä"])
def test_a_position_that_waits_for_nothing_is_refused(
    tidemark: Skipped, root: Path, position: str
) -> None:
    with pytest.raises(ChangeNotSkippedError) as refused:
        tidemark(*RUN, "--through", position)
    assert refused.value.position == position
    assert len(waiting(root)) == 4
