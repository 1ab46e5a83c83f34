from __future__ import annotations

import io
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from spark_jobs.cli.demo import PERIOD, SCHEDULED, write_schedule
from spark_jobs.definitions.vocabulary import RefreshPolicy
from spark_jobs.demo.errors import DemoStepError
from spark_jobs.demo.first_refreshes import build_order
from spark_jobs.demo.plan import LoadRun, plan
from spark_jobs.demo.refreshes import ViewProgress
from spark_jobs.demo.summary import SHOWN, sent_line
from spark_jobs.demo.tally import Tally
from spark_jobs.demo.waits import (
    LONGEST_PAUSE_SECONDS,
    POLL_SECONDS,
    STALLED_SECONDS,
    Pauses,
    check,
    stalled,
)
from spark_jobs.graph.compile import compile_project
from spark_jobs.java_options import LONG_RUN, SHORT_RUN
from spark_jobs.serving.report.balances import Balance
from spark_jobs.settings import DEMO_FILE, REPOSITORY, Settings, load_settings
from spark_jobs.stack.environment import stack_environment
from spark_jobs.state.attempts import AttemptStatus, RefreshAttempt
from spark_jobs.terminal.steps import Steps
from tests.shipped import shipped_project

NOW = datetime(2026, 3, 1, tzinfo=UTC)
BLOCKED = RefreshAttempt(
    attempt_id="a",
    view="orders_by_day",
    tick="t",
    status=AttemptStatus.BLOCKED,
    epoch=1,
    started_at=NOW,
    updated_at=NOW,
)


@pytest.fixture
def shop(tmp_path: Path) -> Settings:
    """Settings of a copy of the project in which a demo was started."""
    shutil.copytree(REPOSITORY / "sql/gold", tmp_path / "sql/gold")
    write_schedule(load_settings(tmp_path))
    return load_settings(tmp_path)


def schedule_of(settings: Settings) -> tuple[str, tuple[str, ...]]:
    return settings.gold.every_override, settings.gold.scheduled_at_first


def test_every_process_and_every_later_command_has_the_demos_schedule(
    shop: Settings, monkeypatch: pytest.MonkeyPatch
):
    assert schedule_of(shop) == (PERIOD, SCHEDULED)
    for name, value in stack_environment(shop).items():
        monkeypatch.setenv(name, value)
    assert schedule_of(load_settings()) == (PERIOD, SCHEDULED)
    assert load_settings().spark.java_options == SHORT_RUN


def test_settings_of_the_project_and_the_environment_win_over_the_demos_schedule(
    shop: Settings, monkeypatch: pytest.MonkeyPatch
):
    (shop.project_dir / "tidemark.yml").write_text("gold: {every_override: 1 hour}\n")
    assert schedule_of(load_settings(shop.project_dir)) == ("1 hour", SCHEDULED)
    monkeypatch.setenv("TIDEMARK_GOLD__EVERY_OVERRIDE", "2 hours")
    assert schedule_of(load_settings(shop.project_dir)) == ("2 hours", SCHEDULED)


def test_another_state_directory_has_no_demo(shop: Settings):
    elsewhere = load_settings(shop.project_dir, state_dir=shop.project_dir / "other")
    assert schedule_of(elsewhere) == ("", ())
    (shop.project_dir / "tidemark.yml").write_text("state_dir: other\n")
    assert schedule_of(load_settings(shop.project_dir)) == ("", ())


def test_the_demo_schedule_omits_deleted_views(shop: Settings):
    first, second = (shop.project_dir / f"sql/gold/{name}.sql" for name in SCHEDULED)
    first.unlink()
    assert schedule_of(load_settings(shop.project_dir)) == (PERIOD, SCHEDULED[1:])
    second.unlink()
    assert schedule_of(load_settings(shop.project_dir)) == ("", ())


@pytest.mark.parametrize(
    "text", ["", "gold: 1", "gold: {every_override: [1]}", "spark: {java_options: -Xint}"]
)
def test_a_file_that_is_no_schedule_of_a_demo_changes_nothing(shop: Settings, text: str):
    (shop.state / DEMO_FILE).write_text(text)
    settings = load_settings(shop.project_dir)
    assert schedule_of(settings) == ("", ())
    assert settings.spark.java_options == LONG_RUN


def test_the_demo_names_views_that_exist():
    views = compile_project(REPOSITORY, every_override=PERIOD, scheduled_at_first=SCHEDULED).gold
    assert {*SCHEDULED, *SHOWN} <= views.keys()
    assert {name for name, one in views.items() if one.every_seconds == 60} == set(SCHEDULED)


def test_the_demo_builds_every_view_after_those_that_it_reads():
    manifest = shipped_project()
    before, behind = build_order(manifest, SCHEDULED)
    entries = manifest.gold.values()
    continuous = [one.name for one in entries if one.refresh is RefreshPolicy.CONTINUOUS]
    assert continuous
    order = [*before, *SCHEDULED, *continuous, *behind]
    assert sorted(order) == sorted(manifest.gold)
    for view in order:
        for above in manifest.gold[view].upstream:
            assert order.index(above) < order.index(view)


def test_the_load_in_one_sentence():
    tally = Tally()
    for operation in plan(LoadRun(7, 1, NOW, 100, 20)):
        tally.add(operation)
    line = sent_line(tally)
    assert f"{tally.committed:,} transactions" in line
    assert f"{sum(tally.malformed.values())} malformed" in line


@pytest.mark.parametrize(
    ("blocked", "late", "words"),
    [
        pytest.param(BLOCKED, False, "blocks orders_by_day", id="blocked"),
        pytest.param(None, True, "orders_by_day not refreshed within", id="late"),
    ],
)
def test_waiting_fails_for_a_blocked_or_late_view(
    blocked: RefreshAttempt | None, late: bool, words: str
):
    view = ViewProgress("orders_by_day", published=None, fresh=True, blocked=blocked)
    with pytest.raises(DemoStepError, match=words):
        check([view], late=late)


def test_pauses_grow_while_the_balances_disagree_with_what_arrived():
    pauses = Pauses()
    found = [pauses.after(pending) for pending in (9, 9, 0, 0, 0, 0, 0, 3)]
    assert found == [2, 2, 2, 4, 8, 16, 16, 2]
    assert (POLL_SECONDS, LONGEST_PAUSE_SECONDS) == (2, 16)


def test_a_stall_is_a_long_time_without_any_movement():
    pauses = Pauses(pending=4)
    assert not pauses.stalled
    pauses.moved_at -= STALLED_SECONDS + 1
    pauses.after(4)
    assert pauses.stalled
    pauses.after(3)
    assert not pauses.stalled


def test_a_stall_names_what_does_not_balance():
    balance = Balance(
        "orders", "orders", None, None, None, None, ("2 rows are only in the source",)
    )
    words = "silver.orders: differs; 2 rows are only in the source"
    assert words in stalled(balance).render()


def test_steps_print_what_runs_and_its_duration():
    text = io.StringIO()
    steps = Steps(Console(file=text, width=100))
    with steps.step("count to three") as note:
        note("one")
    lines = text.getvalue().splitlines()
    assert lines[0] == "... count to three"
    assert lines[1].startswith("done count to three 0 s")


def test_a_step_that_fails_is_not_called_done():
    text = io.StringIO()
    with pytest.raises(ValueError, match="no"), Steps(Console(file=text)).step("count"):
        raise ValueError("no")
    assert "done" not in text.getvalue()
