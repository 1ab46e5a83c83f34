"""When Spark's analyzer is asked: by ``validate``, ``plan`` and ``apply``, with and without server.

A double takes the place of a session; tests/spark asks a real one.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkException
from typer.testing import Result

from spark_jobs.cli.plan import CHANGES
from spark_jobs.errors import LakehouseError, ProblemsError
from spark_jobs.serving.sql import view_analysis
from spark_jobs.serving.sql.view_analysis import ACCEPTED
from spark_jobs.settings import load_settings
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.errors import JavaMissingError
from tests.golden.declaration_cases import RIGHT, write_project
from tests.unit.deploy.in_force import in_force, tidemark

SPEND = "sql/gold/spend.sql"
COUNTED = RIGHT[SPEND].replace("SUM(o.amount)", "COUNT(*)")
# The double refuses it, and the compiler accepts it.
REFUSED = RIGHT[SPEND].replace("SUM(", "MAX(")
NOBODY = "sc://127.0.0.1:1"


class Analyzer:
    """Takes the place of a session, and records what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.texts: list[str] = []
        self.stopped = 0
        self.gone = False

    def sql(self, text: str) -> SimpleNamespace:
        self.texts.append(text)
        self.asked.append("refused" if "MAX(" in text else "accepted")
        if self.gone:
            raise PySparkException("failed to connect to all addresses")
        if "MAX(" in text:
            raise AnalysisException("[DATATYPE_MISMATCH] It does not fit. SQLSTATE: 42K09")
        return SimpleNamespace(schema=None)

    def stop(self) -> None:
        self.stopped += 1

    def questions(self) -> list[str]:
        """What it was asked since the last call."""
        asked, self.asked = sorted(self.asked), []
        return asked


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    state = tmp_path / "state"
    state.mkdir()
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(state))
    return write_project(tmp_path / "shop", {"sql/gold/counted.sql": COUNTED})


@pytest.fixture
def analyzer() -> Analyzer:
    return Analyzer()


@pytest.fixture
def opened(analyzer: Analyzer, monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], list[str]]:
    """Replaces sessions: there is a server, or there is none; returns what is opened."""

    def replace(server: bool) -> list[str]:
        found: list[str] = []

        def served(_: object) -> Analyzer | None:
            found.append("served")
            return analyzer if server else None

        def started(_: object) -> Analyzer:
            found.append("started")
            return analyzer

        monkeypatch.setattr(view_analysis, "served_session", served)
        monkeypatch.setattr(view_analysis, "open_session", started)
        return found

    return replace


def problems(result: Result) -> Iterator[tuple[str, str]]:
    """The condition and the place of each problem."""
    assert isinstance(result.exception, ProblemsError), result.exception
    for one in result.exception.problems:
        yield one.condition, str(one.location or "")


def test_a_server_is_asked_once_about_each_text(
    project: Path, analyzer: Analyzer, opened: Callable[[bool], list[str]]
) -> None:
    sessions = opened(True)
    result = tidemark(project, "validate")
    assert result.exit_code == 0, result.output
    assert result.stdout.endswith("2 gold views. Spark analyzed 2 views: 2 new, 0 cached.\n")
    assert result.stderr == ""
    # Each as it is written, and as it is maintained.
    assert analyzer.questions() == ["accepted"] * 4
    assert (sessions, analyzer.stopped) == (["served"], 1)

    (project / SPEND).write_text(REFUSED)
    assert [*problems(tidemark(project, "validate"))] == [
        ("SPARK_REFUSES_VIEW", f"{SPEND}:1:1"),
    ]
    assert analyzer.questions() == ["refused"]

    # What was accepted before needs no session.
    (project / SPEND).write_text(RIGHT[SPEND])
    sessions.clear()
    assert "0 new, 2 cached." in tidemark(project, "validate").stdout
    assert sessions == []


def test_without_a_server_it_is_said_that_spark_was_not_asked(
    project: Path, analyzer: Analyzer, opened: Callable[[bool], list[str]]
) -> None:
    opened(False)
    result = tidemark(project, "validate")
    assert result.exit_code == 0
    [note] = result.stderr.splitlines()
    assert note.startswith("Spark was not asked about 2 views: no Spark Connect server runs")
    assert "--spark" in note
    assert "Spark" not in result.stdout
    told = json.loads(tidemark(project, "validate", "--json").stdout)["spark"]
    assert told == {"new": 0, "cached": 0, "left": 2, "note": note}
    assert analyzer.questions() == []


def test_a_server_that_is_down_neither_fails_nor_delays(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_SPARK__REMOTE", NOBODY)
    began = time.monotonic()
    result = tidemark(project, "validate")
    assert result.exit_code == 0
    assert f"Spark Connect server '{NOBODY}' does not answer" in result.stderr
    assert time.monotonic() - began < 10
    # It has to be asked: that it does not answer is one of the problems.
    monkeypatch.setattr("spark_jobs.storage.session.ANSWER_SECONDS", 0.2)
    (project / "sources/more.yml").write_text("format: jsn\n")
    found = [condition for condition, _ in problems(tidemark(project, "validate", "--spark"))]
    assert len(found) > 1
    assert found[-1] == "SPARK_UNREACHABLE"


def test_the_option_starts_a_session_or_forbids_the_question(
    project: Path, analyzer: Analyzer, opened: Callable[[bool], list[str]]
) -> None:
    sessions = opened(True)
    result = tidemark(project, "validate", "--no-spark")
    assert (result.exit_code, result.stderr, sessions) == (0, "", [])
    assert "2 new" in tidemark(project, "validate", "--spark").stdout
    assert (sessions, analyzer.stopped) == (["started"], 1)


@pytest.mark.parametrize("option", [(), ("--spark",)])
def test_a_server_that_goes_away_has_refused_nothing(
    project: Path,
    analyzer: Analyzer,
    opened: Callable[[bool], list[str]],
    option: tuple[str, ...],
) -> None:
    opened(True)
    analyzer.gone = True
    result = tidemark(project, "validate", *option)
    assert "Spark was not asked about 2 views" in result.stderr
    if option:
        assert [*problems(result)] == [("QUERY_REJECTED", "")]
    else:
        assert result.exit_code == 0


def test_of_a_mistake_that_the_compiler_found_spark_is_not_asked(
    project: Path, analyzer: Analyzer, opened: Callable[[bool], list[str]]
) -> None:
    opened(True)
    reader = COUNTED.replace("silver.orders", "gold.spend").replace("COUNT(*)", "SUM(o.spend)")
    files = {
        SPEND: RIGHT[SPEND].replace("o.amount", "o.amuont"),
        "sql/gold/reader.sql": reader,
        "sql/gold/lost.sql": COUNTED.replace("silver.orders", "orders"),
        "sql/gold/maximum.sql": REFUSED,
    }
    for name, text in files.items():
        (project / name).write_text(text)
    assert sorted(condition for condition, _ in problems(tidemark(project, "validate"))) == [
        "SPARK_REFUSES_VIEW",
        "UNKNOWN_COLUMN",
        "UNKNOWN_TABLE",
    ]
    assert analyzer.questions() == ["accepted", "accepted", "refused"]


def test_a_type_that_only_spark_knows_follows_from_the_query_that_makes_it(
    project: Path, analyzer: Analyzer, opened: Callable[[bool], list[str]]
) -> None:
    opened(True)
    # The compiler does not say what becomes of a rounded or multiplied decimal.
    silver = RIGHT["sql/silver/orders.sql"].replace("amount,", "ROUND(amount, 1) AS amount,")
    (project / "sql/silver/orders.sql").write_text(silver)
    twice = RIGHT[SPEND].replace("SUM(o.amount)", "2 * MIN(o.amount)")
    (project / SPEND).write_text(twice)
    reader = COUNTED.replace("silver.orders", "gold.spend").replace("COUNT(*)", "SUM(o.spend)")
    (project / "sql/gold/reader.sql").write_text(reader)
    assert "3 new" in tidemark(project, "validate").stdout
    written, maintained = (one for one in analyzer.texts if "SUM(o.spend)" in one)
    for text in (written, maintained):
        assert "made.`spend` FROM (SELECT" in text
        assert "made.`amount` FROM (SELECT" in text
        assert "CAST(NULL AS )" not in text


def test_the_cache_needs_no_state_directory_and_survives_what_is_no_cache(
    project: Path, opened: Callable[[bool], list[str]], tmp_path: Path
) -> None:
    opened(True)
    cache = tmp_path / "state" / ACCEPTED
    cache.write_text('{"a": 1}')
    assert "2 new" in tidemark(project, "validate").stdout
    assert len(json.loads(cache.read_text())) == 2
    cache.unlink()
    shutil.rmtree(cache.parent)
    assert "2 new" in tidemark(project, "validate").stdout
    assert not cache.parent.exists()


def test_plan_asks_about_what_it_would_compute(
    project: Path, analyzer: Analyzer, opened: Callable[[bool], list[str]]
) -> None:
    in_force(project)
    sessions = opened(True)
    assert tidemark(project, "plan").exit_code == 0
    assert sessions == []

    (project / SPEND).write_text(REFUSED)
    result = tidemark(project, "plan", "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    [problem] = found["problems"]
    assert (problem["condition"], problem["file"]) == ("SPARK_REFUSES_VIEW", SPEND)
    assert found["spark"]["new"] == 1
    assert analyzer.questions() == ["refused"]
    assert f"{SPEND}:1:1: gold.spend: Spark refuses the SQL" in tidemark(project, "plan").output


def test_plan_without_a_server_says_so(
    project: Path, analyzer: Analyzer, opened: Callable[[bool], list[str]]
) -> None:
    sessions = opened(False)
    result = tidemark(project, "plan")
    assert result.exit_code == CHANGES
    assert "Spark was not asked about 2 views" in result.stderr
    assert tidemark(project, "plan", "--spark").exit_code == CHANGES
    assert sessions == ["served", "started"]
    assert analyzer.questions() == ["accepted"] * 4


def test_apply_asks_first_and_applies_nothing_that_spark_refuses(
    project: Path, analyzer: Analyzer, opened: Callable[[bool], list[str]]
) -> None:
    sessions = opened(False)
    (project / SPEND).write_text(REFUSED)
    (project / "sql/gold/counted.sql").write_text(REFUSED)
    result = tidemark(project, "apply", "--yes")
    assert [*problems(result)] == [
        ("SPARK_REFUSES_VIEW", "sql/gold/counted.sql:1:1"),
        ("SPARK_REFUSES_VIEW", f"{SPEND}:1:1"),
    ]
    assert (sessions, analyzer.stopped) == (["started"], 1)
    with ControlStore.open(load_settings(project).control_url) as store:
        assert store.newest_deployment() is None


def test_apply_changes_nothing_where_spark_cannot_be_asked(
    project: Path, opened: Callable[[bool], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(_: object) -> Any:
        raise JavaMissingError("java")

    sessions = opened(False)
    monkeypatch.setattr(view_analysis, "open_session", none)
    result = tidemark(project, "apply", "--yes")
    assert [*problems(result)] == [("JAVA_MISSING", "")]
    assert "`--no-spark` does without" in result.stderr
    refused = tidemark(project, "apply", "--no-spark").exception
    assert isinstance(refused, LakehouseError)
    assert refused.condition == "NOT_CONFIRMED"
    assert sessions == []


def test_an_environment_is_asked_about_too(
    project: Path, analyzer: Analyzer, opened: Callable[[bool], list[str]]
) -> None:
    in_force(project)
    opened(True)
    (project / SPEND).write_text(REFUSED)
    assert tidemark(project, "plan", "--env", "ana").exit_code == 1
    result = tidemark(project, "apply", "--env", "ana", "--yes")
    assert [*problems(result)] == [("SPARK_REFUSES_VIEW", f"{SPEND}:1:1")]
    assert analyzer.questions() == ["refused"] * 2
    with ControlStore.open(load_settings(project).control_url) as store:
        assert store.environments() == []
