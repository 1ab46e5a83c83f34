"""``tidemark source delete-backfill``: what it shows, and when it wants a person's consent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from spark_jobs.bronze import delete_records
from spark_jobs.cli.main import app
from spark_jobs.names import Layer, TableName
from spark_jobs.settings import load_settings
from spark_jobs.storage.lake import Lake
from tests.servers import Postgres
from tests.spark.silver.world import bronze, change

SOURCE = """description: What is ordered.
owner: shop
format: debezium
topic: shop.public.orders
table: public.orders
keys: [order_id]
columns:
  order_id: {type: BIGINT, required: true}
  status: STRING
  amount: DECIMAL(12,2)
"""
ALIVE = 150
WHY = ("--reason", "rows were deleted while the slot was lost")


class Command:
    """The verb over a source whose database has a part of the rows."""

    def __init__(self, project: Path, server: Postgres) -> None:
        self.project = project
        self.server = server

    def there(self, keys: range) -> None:
        """The rows that the database has."""
        self.server.fill("public.orders", "order_id BIGINT PRIMARY KEY", [(key,) for key in keys])

    def __call__(self, *words: str) -> Result:
        asked = ["--project", str(self.project), "source", "delete-backfill", "orders", *words]
        return CliRunner().invoke(app, asked)


@pytest.fixture
def delete_backfill(
    spark: SparkSession, tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> Command:
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources/orders.yml").write_text(SOURCE)
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("TIDEMARK_SOURCE_DATABASE", postgres.dsn)
    # Nobody listens there: whoever gets so far was not refused.
    monkeypatch.setenv("TIDEMARK_KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    monkeypatch.setattr(delete_records, "_FLUSH_SECONDS", 1)
    monkeypatch.setenv("COLUMNS", "250")
    location = Lake(load_settings(tmp_path).lake).location(TableName(Layer.BRONZE, "orders"))
    known = [change("r", key, 10 + key) for key in range(ALIVE)]
    bronze(spark, known).write.format("delta").save(location)

    def session(*_: Any, **__: Any) -> SparkSession:
        return spark

    # The session of all tests, which the verb must not end.
    monkeypatch.setattr("spark_jobs.storage.session.driver_session", session)
    monkeypatch.setattr(spark, "stop", lambda: None)
    return Command(tmp_path, postgres)


def condition(result: Result) -> str | None:
    return getattr(result.exception, "condition", None)


def test_more_than_100_rows_and_5_percent_need_consent(delete_backfill: Command) -> None:
    delete_backfill.there(range(101, ALIVE))
    refused = delete_backfill("--run", *WHY)
    assert condition(refused) == "DELETION_TOO_LARGE"
    assert isinstance(refused.exception, Exception)
    assert (refused.exception.rows, refused.exception.among) == (101, ALIVE)  # type: ignore[attr-defined]
    assert "--let-pass" in str(refused.exception)
    # What a person consents to is told: here there is only nobody to tell it to.
    assert condition(delete_backfill("--run", "--let-pass", *WHY)) == "KAFKA_UNREACHABLE"


def test_a_hundred_rows_need_none(delete_backfill: Command) -> None:
    delete_backfill.there(range(100, ALIVE))
    assert condition(delete_backfill("--run", *WHY)) == "KAFKA_UNREACHABLE"


def test_nothing_runs_without_a_reason(delete_backfill: Command) -> None:
    delete_backfill.there(range(ALIVE))
    assert condition(delete_backfill("--run")) == "REPLAY_REQUEST"


def test_the_dry_run_shows_how_many_and_which(delete_backfill: Command) -> None:
    delete_backfill.there(range(101, ALIVE))
    shown = delete_backfill()
    assert shown.exit_code == 0, shown.exception
    row = next(line for line in shown.stdout.splitlines() if "orders" in line)
    assert " 101 " in row
    assert f" {ALIVE} " in row
    assert row.count('{"order_id": ') == 5
    assert "Nothing was written" in shown.stdout
    [told] = json.loads(delete_backfill("--json").stdout)
    assert (told["rows"], told["among"], told["kept"], told["written"]) == (101, ALIVE, 0, False)
    assert all(one["order_id"] < 101 for one in told["examples"])
    assert len(told["examples"]) == 5
