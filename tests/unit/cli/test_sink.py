"""What a person sees of the sinks."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import redis
from rich.console import Console
from typer.testing import CliRunner

from spark_jobs.cli.main import app
from spark_jobs.cli.sink import examples_table, findings_table
from spark_jobs.errors import ProblemsError
from spark_jobs.serving.report.sink_status import SinkStatus, print_sinks
from spark_jobs.sinks.changes import Change
from spark_jobs.sinks.errors import SinkGapError, SinkUnknownError
from spark_jobs.sinks.target import Watermark
from spark_jobs.sinks.verify import SinkVerification
from spark_jobs.state.progress import StreamProgress, StreamState, sink_query
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import utc_now
from tests.golden.declaration_cases import RIGHT, write_project
from tests.unit.sinks.conftest import Table, rows

NAME = "spend_redis"
SINKS = 'sinks:\n  - redis: {prefix: "spend:"}\n  - kafka: {topic: spend}\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    text = RIGHT["sql/gold/spend.sql"].replace("every:", f"{SINKS}every:")
    return write_project(tmp_path / "project", {"sql/gold/spend.sql": text})


def call(project: Path, *words: str) -> Any:
    return CliRunner().invoke(app, ["--project", str(project), *words], catch_exceptions=False)


def statuses(project: Path) -> dict[str, dict[str, Any]]:
    found = json.loads(call(project, "status", "--json").stdout)
    assert found["streams"] == []
    return {one["sink"]: one for one in found["sinks"]}


def test_a_sink_is_new_then_behind_then_silent(project: Path, tmp_path: Path) -> None:
    new = statuses(project)
    assert {one["state"] for one in new.values()} == {"new"}
    alone = json.loads(call(project, "sink", "status", "--json").stdout)
    assert alone == list(new.values())

    table = Table(str(tmp_path / "state/lake/gold/spend"))
    table.create(rows({1: "Ann"}))
    table.upsert(rows({1: "Anna"}))
    now = utc_now()
    report = StreamProgress(
        query=sink_query("spend_redis"), batch_id=0, records=3, at=now, heartbeat_at=now
    )
    with ControlStore.open(f"sqlite:///{tmp_path}/state/control.db") as store:
        store.record_progress(report)
        one = statuses(project)["spend_redis"]
        assert (one["state"], one["version"], one["versions_behind"]) == ("running", 0, 1)
        assert one["behind"] is not None
        assert one["changes"] == 3
        store.record_progress(replace(report, batch_id=1))
        assert statuses(project)["spend_redis"]["versions_behind"] == 0
        store.record_heartbeat(report.query, at=now, state=StreamState.REFUSED, error="SINK_GAP")
        assert statuses(project)["spend_redis"]["error"] == "SINK_GAP"
        store.record_progress(replace(report, heartbeat_at=now - timedelta(minutes=5)))
        assert statuses(project)["spend_redis"]["state"] == "silent"


def test_the_table_of_sinks(project: Path, tmp_path: Path) -> None:
    now = utc_now()
    shown = SinkStatus(
        sink="spend_redis",
        table="gold.spend",
        system="redis",
        target="spend:",
        state="waiting",
        version=4,
        versions_behind=2,
        behind=timedelta(minutes=3),
        changes=1200,
        delivered_at=now - timedelta(minutes=4),
        error="it is down",
    )
    out = io.StringIO()
    print_sinks(Console(file=out, width=120), [shown], now=now)
    text = re.sub(r"\s+", " ", out.getvalue())
    for part in (
        "waiting",
        "gold.spend to redis spend:",
        "2 versions, 3 min",
        "@4 4 min ago",
        "1,200",
        "spend_redis: it is down",
    ):
        assert part in text


def test_values_of_rows_are_no_markup() -> None:
    key, row = '{"id":"[/b]"}', '{"id":"[/b]","says":"[red]no[red]"}'
    found = SinkVerification(
        sink=NAME,
        watermark=Watermark("a", 1, 1),
        rows=1,
        missing=1,
        unexpected=0,
        different=0,
        examples=(Change(key, None, row),),
    )
    out = io.StringIO()
    console = Console(file=out, width=120)
    console.print(examples_table(NAME, found))
    console.print(findings_table([(NAME, SinkGapError(NAME, "'[/b]' is gone"))]))
    for text in (key, row, "'[/b]' is gone"):
        assert text in out.getvalue()


def test_the_verbs_of_a_sink(
    project: Path, tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_SINKS__REDIS", redis_url)
    table = Table(str(tmp_path / "state/lake/gold/spend"))
    table.create(pa.table({"user_id": [1, 2], "spend": ["1.50", None]}))

    assert "built from version 0, 2 changes" in call(project, "sink", "run", NAME).stdout
    assert "holds version 0, 0 changes" in call(project, "sink", "run", NAME).stdout
    assert call(project, "sink", "verify", NAME).exit_code == 0
    assert statuses(project)[NAME]["versions_behind"] == 0

    with redis.Redis.from_url(redis_url) as client:
        client.hset("spend:1", "spend", "99\x1b[2J")
        client.delete("spend:2")
    done = call(project, "sink", "verify", NAME)
    assert done.exit_code == 1
    text = re.sub(r"[\s│]+", " ", done.stdout)
    for part in ("DIFFERENT", "1 missing", "0 unexpected", "1 different", '{"user_id":2}', "none"):
        assert part in text
    assert "\x1b[2J" not in done.stdout
    assert "2 changes" in call(project, "sink", "rebuild", NAME).stdout
    [found] = json.loads(call(project, "sink", "verify", NAME, "--json").stdout)
    assert (found["finding"], found["rows"], found["watermark"]["epoch"]) == ("EQUAL", 2, 2)

    table.delete("user_id = 1")
    monkeypatch.setenv("TIDEMARK_KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    monkeypatch.setattr("spark_jobs.sinks.topics.ANSWER_SECONDS", 1.0)
    with pytest.raises(ProblemsError) as caught:
        call(project, "sink", "run")
    assert [one.condition for one in caught.value.problems] == ["SINK_UNREACHABLE"]
    with redis.Redis.from_url(redis_url) as client:
        assert client.keys("spend:*") == [b"spend:2"]


def test_an_undeclared_sink_gets_a_suggestion(project: Path) -> None:
    with pytest.raises(SinkUnknownError) as caught:
        call(project, "sink", "rebuild", "spend_reddis")
    assert caught.value.hint == 'Did you mean "spend_redis"?'


def test_verify_ends_with_1_where_there_is_nothing_to_compare(project: Path) -> None:
    done = call(project, "sink", "verify", "spend_redis", "--json")
    assert done.exit_code == 1
    [found] = json.loads(done.stdout)
    assert (found["holds"], found["finding"]) == (False, "TABLE_MISSING")
