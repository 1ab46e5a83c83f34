"""The verbs replay, rollback and release: their words, their tables and what they refuse."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table
from typer.testing import CliRunner

from spark_jobs.cli.approval import SecondPersonNeededError
from spark_jobs.cli.main import app
from spark_jobs.gold.base.errors import NothingToReleaseError, ViewUnknownError
from spark_jobs.gold.recover import release as recovery
from spark_jobs.gold.recover.rollback import Rollbacker
from spark_jobs.gold.refresh.publishing import Published
from spark_jobs.names import TableName, TableVersion
from spark_jobs.planning.errors import ReplayRequestError
from spark_jobs.planning.vector import VersionVector
from spark_jobs.serving.report.replay_tables import plan_table, progress_table, replays_table
from spark_jobs.state.attempts import RefreshAttempt
from spark_jobs.state.errors import ReplayRejectedError
from spark_jobs.state.pinned_views import PinnedView
from spark_jobs.state.replays import (
    Decision,
    DecisionKind,
    ReplayKind,
    ReplayRecord,
    ReplayStatus,
    ReplayView,
    ViewProgress,
    approval,
)
from spark_jobs.state.store import ControlStore
from tests.unit.planning import test_recompute as planned

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
RECORD = ReplayRecord(
    replay_id="replay-1",
    kind=ReplayKind.REPLAY,
    who="ann",
    reason="amounts are wrong",
    ticket="OPS-1",
    request={"views": ["daily"]},
    plan={},
    started_at=NOW,
    decisions=approval("airflow:eve"),
)
REQUEST = planned.replay_request(planned.MANIFEST, ["daily"]).as_dict()
FILES = {
    "sources/orders.yml": "format: delta\nlocation: orders\ncolumns: {amount: BIGINT, day: DATE}\n",
    "sql/gold/daily.sql": "/* gold\ndescription: d\nowner: o\nrefresh: bulk\ngrain: [day]\n*/\n"
    "SELECT o.day AS day, SUM(o.amount) AS amount\nFROM bronze.orders AS o\nGROUP BY o.day\n",
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setenv("TIDEMARK_PROJECT", str(tmp_path / "project"))
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    return tmp_path


def tidemark(*words: str) -> str:
    return CliRunner().invoke(app, words, catch_exceptions=False).output


def shown(table: Table) -> str:
    out = io.StringIO()
    Console(file=out, width=250).print(table)
    return out.getvalue()


def test_a_rollback_is_resumed_like_a_replay(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resumed = []
    monkeypatch.setattr(Rollbacker, "run", lambda _, replay_id: resumed.append(replay_id))
    with ControlStore.open(f"sqlite:///{project}/state/control.db") as store:
        asked = {"views": ["daily"], "version": 3}
        record = replace(RECORD, replay_id="rollback-1", kind=ReplayKind.ROLLBACK, request=asked)
        store.begin_replay(record, views=["daily"])
    assert "rollback-1" in tidemark("replay", "resume", "rollback-1")
    assert resumed == ["rollback-1"]


def test_a_view_after_replay_is_a_dry_run(project: Path) -> None:
    plan = json.loads(
        tidemark("replay", "daily", "--from", "2026-01-01", "--to=2026-02-01", "--json")
    )
    assert plan["request"]["views"] == ["daily"]
    assert plan["views"][0]["reason_code"] == "INPUT_MISSING"
    assert "nothing was written" in tidemark("replay", "gold.daily")
    assert "Nothing was replayed" in tidemark("replay", "status")
    assert json.loads(tidemark("replay", "status", "--json")) == []


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["replay", "dayly"], ViewUnknownError),
        (["replay", "daily", "--run"], ReplayRequestError),
        (["replay", "daily", "--from", "2026-01-01"], ReplayRequestError),
        (["replay", "daily", "--chunk", "1 day"], ReplayRequestError),
        (["rollback", "daily", "--reason", "short"], ReplayRequestError),
        (["release", "daily"], NothingToReleaseError),
    ],
)
def test_an_impossible_request_is_an_error(project: Path, words: list[str], error: type) -> None:
    with pytest.raises(error):
        tidemark(*words)


def test_a_pinned_view_is_red_in_the_status_and_skipped(project: Path) -> None:
    with ControlStore.open(f"sqlite:///{project}/state/control.db") as store:
        store.pin_view(
            PinnedView(
                view="daily", version=3, who="ann", reason="negative", replay_id="b", since=NOW
            )
        )
    (view,) = json.loads(tidemark("status", "--json"))["views"]
    assert view["hold"]["version"] == 3
    assert "rolled back to version 3, pinned" in " ".join(tidemark("status").split())
    skipped = tidemark("explain", "daily", "--json")
    assert "VIEW_PINNED" in skipped
    assert "the form ops__release, or tidemark release daily, lets it go on" in skipped
    why = ("--reason", "the source's amounts are 100% right", "--ticket", "OPS-7")
    assert "daily is no longer pinned" in tidemark("release", "daily", *why)


def test_a_release_for_programs(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pinned = PinnedView(view="daily", version=3, who="ann", reason="x", replay_id="b", since=NOW)
    blocked = RefreshAttempt(
        attempt_id="a1",
        view="daily",
        tick="t",
        epoch=0,
        verdict={"released_rules": "unique(day)"},
        started_at=NOW,
        updated_at=NOW,
    )
    newer = VersionVector({TableName.parse("bronze.orders"): TableVersion("id", 4)})
    with ControlStore.open(f"sqlite:///{project}/state/control.db") as store:
        store.pin_view(pinned)
        store.create_attempt(blocked)
    assert json.loads(tidemark("release", "daily", "--json")) == {"view": "daily", "unpinned": True}

    monkeypatch.setattr(recovery, "blocked_attempt", lambda *_, **__: blocked)
    monkeypatch.setattr(recovery, "newer_input", lambda *_: newer)
    published = Published("daily", "a1", 5, changed=True)
    monkeypatch.setattr(recovery, "release_blocked", lambda *_, **__: published)
    done = json.loads(tidemark("release", "daily", "--reason", "the day is right", "--json"))
    assert (done["view"], done["attempt_id"], done["unpinned"]) == ("daily", "a1", False)
    assert done["verdict"] == {"released_rules": "unique(day)"}
    assert done["newer_input"] == {"bronze.orders": {"id": "id", "version": 4}}


def test_one_person_alone_is_refused_where_the_settings_ask_for_two(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_REPLAY__APPROVAL", "second_person")
    for words, form in (
        (["release", "daily"], "ops__release"),
        (["rollback", "daily", "--reason", "revenue is negative"], "ops__rollback"),
    ):
        with pytest.raises(SecondPersonNeededError) as refused:
            tidemark(*words)
        assert refused.value.form == form


def test_a_replay_goes_on_by_the_command_line_as_far_as_one_person_may(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = {"reads": 10_000_000_000}
    fresh = replace(RECORD, request=REQUEST, decisions=[])
    known = {
        "approved": replace(RECORD, request=REQUEST, plan=large),
        "small": replace(fresh, plan={"reads": 5}),
        "large": replace(fresh, plan=large),
        "unknown": fresh,
    }
    with ControlStore.open(f"sqlite:///{project}/state/control.db") as store:
        for name, record in known.items():
            store.begin_replay(replace(record, replay_id=name), views=())
        for name, kind in (("back", ReplayKind.ROLLBACK), ("no", ReplayKind.REPLAY)):
            store.begin_replay(replace(fresh, replay_id=name, kind=kind), views=())
        store.add_decision("no", Decision(what=DecisionKind.REJECTED, who="airflow:eve"))
        store.end_replay("no", status=ReplayStatus.REJECTED)

    with pytest.raises(ReplayRejectedError) as rejected:
        tidemark("replay", "resume", "no")
    assert rejected.value.who == "airflow:eve"
    monkeypatch.setenv("TIDEMARK_REPLAY__APPROVAL", "second_person")
    for name, form in (("large", "replay"), ("unknown", "replay"), ("back", "rollback")):
        with pytest.raises(SecondPersonNeededError) as refused:
            tidemark("replay", "resume", name)
        assert refused.value.form == f"ops__{form}"
    for name in ("approved", "small"):
        tidemark("replay", "resume", name)
        assert json.loads(tidemark("replay", "status", name, "--json"))["status"] == "done"


def test_the_tables_name_what_matters() -> None:
    view = planned.ViewPlan(refresh=planned.plan(), rows=10, in_the_way=("bob writes it",))
    request = planned.replay_request(planned.MANIFEST, ["daily"])
    plan = planned.ReplayPlan(
        request=request, views=(view,), left_out=("old",), followers=("weekly",)
    )
    text = shown(plan_table(plan))
    for part in ("daily", "replay of the rows", "bob writes it", "left out: old", "weekly"):
        assert part in text
    for heading in ("decision", "conflicts"):
        assert heading in text
    for part in ("replay-1", "ann", "airflow:eve", "OPS-1", "2026-01-02 12:00:00 UTC"):
        assert part in shown(replays_table([RECORD]))
    row = ReplayView(
        replay_id="replay-1",
        view="daily",
        position=0,
        status=ViewProgress.BUILT,
        attempt_id="a1",
        difference={"leaving": 1234, "entering": 5},
    )
    attempt = RefreshAttempt(
        attempt_id="a1",
        view="daily",
        tick="replay-1",
        epoch=1,
        reason="replay of the whole view",
        actual={"pieces": [2, 3]},
        started_at=NOW,
        updated_at=NOW,
    )
    text = shown(progress_table(RECORD, [row], {"daily": attempt}))
    for part in ("built", "2/3", "1,234", "5", "replay of the whole view"):
        assert part in text
    assert "approved by airflow:eve at " in text
