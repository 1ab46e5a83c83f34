"""How views stand, and what analysts read, on real Delta tables."""

from __future__ import annotations

import csv
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from typer.testing import CliRunner, Result

from spark_jobs.cli.main import app
from spark_jobs.definitions.vocabulary import SourceFormat
from spark_jobs.errors import LakehouseError
from spark_jobs.gold.base.errors import ViewUnknownError
from spark_jobs.gold.base.freshness import Freshness, ViewStatus, view_status
from spark_jobs.graph.manifest import ApplyMode, Column, SilverEntry, SourceEntry
from spark_jobs.graph.query import QueryNotReadOnlyError
from spark_jobs.quality.errors import GateBlockedError
from spark_jobs.serving.sql.query import (
    PinnedQuery,
    QueryTimedOutError,
    TableNotWrittenError,
    run_query,
)
from spark_jobs.serving.sql.spark_words import (
    QueryColumnUnknownError,
    QueryFunctionUnknownError,
    QueryRejectedError,
    VersionNotKeptError,
)
from spark_jobs.state.attempts import AttemptStatus
from spark_jobs.state.progress import StreamProgress
from spark_jobs.storage import log, tables
from spark_jobs.storage.history import rows_of_commit
from tests.compiling import put_compiled
from tests.spark.exploits import HIDDEN, PLAIN
from tests.spark.gold_project import GoldProject
from tests.spark.readers import PAGE

ONE_MORE = "SELECT 4L AS order_id, 'ann' AS customer, CAST(1 AS DECIMAL(12, 2)) AS amount"


@pytest.fixture
def run(gold: GoldProject, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The command line over the project, with the run's one Spark session."""
    monkeypatch.setattr("spark_jobs.storage.session.open_session", lambda _: gold.spark)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(gold.settings.state))
    orders = SilverEntry(
        name="orders",
        source="orders",
        sql="",
        projection="",
        columns=(),
        apply=ApplyMode.APPEND,
        file="sql/silver/orders.sql",
        fingerprint="",
    )
    gold.manifest.silver["orders"] = orders
    gold.manifest.sources["orders"] = SourceEntry(
        name="orders",
        format=SourceFormat.JSON,
        topic="orders",
        columns=(),
        file="sources/orders.yml",
    )

    def invoke(*arguments: str) -> Result:
        put_compiled(gold.settings, gold.manifest)
        project = str(gold.settings.project_dir)
        return CliRunner().invoke(app, ["--project", project, *arguments])

    return invoke


def problem_of(result: Result) -> LakehouseError:
    assert isinstance(result.exception, LakehouseError)
    return result.exception


def standing(gold: GoldProject, *, after: timedelta = timedelta()) -> ViewStatus:
    return view_status(gold.refresher.context, "totals", now=datetime.now(UTC) + after)


def test_a_view_is_unpublished_current_behind_then_late(gold: GoldProject) -> None:
    before = standing(gold)
    assert (before.freshness, before.last, before.behind) == (Freshness.UNPUBLISHED, None, None)

    gold.refresh("totals", "t1")
    published = standing(gold, after=timedelta(hours=5))
    assert (published.freshness, published.behind) == (Freshness.CURRENT, timedelta())
    assert (published.published_version, published.rule) == (0, "full")

    gold.append("silver.orders", ONE_MORE)
    gold.append("silver.orders", ONE_MORE)
    entry = gold.manifest.gold["totals"].model_copy(update={"freshness_seconds": 600})
    gold.manifest.gold["totals"] = entry
    behind = standing(gold, after=timedelta(minutes=9))
    assert behind.freshness is Freshness.BEHIND
    assert behind.behind is not None
    assert timedelta(minutes=9) <= behind.behind < timedelta(minutes=10)
    assert standing(gold, after=timedelta(minutes=11)).freshness is Freshness.LATE


def test_compaction_of_an_input_makes_nothing_stale(gold: GoldProject) -> None:
    gold.append("silver.orders", ONE_MORE)
    gold.refresh("totals", "t1")
    gold.execute("OPTIMIZE {}", "silver.orders")
    assert standing(gold).freshness is Freshness.CURRENT


def test_an_input_recreated_counts_from_the_publication(gold: GoldProject) -> None:
    gold.refresh("totals", "t1")
    published = standing(gold).published_at
    assert published is not None
    frame = gold.spark.sql(ONE_MORE)
    from spark_jobs.storage.history import remove_table

    remove_table(gold.location("silver.orders"))
    frame.write.format("delta").save(gold.location("silver.orders"))
    now = datetime.now(UTC)
    assert view_status(gold.refresher.context, "totals", now=now).behind == now - published


def test_a_blocked_view_says_so_until_it_is_published(gold: GoldProject, run: Any) -> None:
    gold.refresh("totals", "t1")
    entry = gold.manifest.gold["totals"]
    rule = {"type": "expect_table_row_count_to_be_between", "kwargs": {"max_value": 1}}
    suite = {"name": "totals", "expectations": [rule]}
    gold.manifest.gold["totals"] = entry.model_copy(update={"suite": suite})
    gold.append("silver.orders", ONE_MORE)
    with pytest.raises(GateBlockedError):
        gold.refresh("totals", "t2")
    blocked = standing(gold)
    assert (blocked.blocked, blocked.published_version) == (True, 0)
    assert blocked.verdict is not None
    assert blocked.verdict["outcome"] == "blocked"
    shown = run("status", "gold.totals").output
    assert "blocked" in shown
    assert "expect_table_row_count_to_be_between" in shown

    gold.manifest.gold["totals"] = entry
    gold.refresh("totals", "t3")
    assert not standing(gold).blocked


def test_status_as_json_holds_views_and_streams(gold: GoldProject, run: Any) -> None:
    gold.refresh("totals", "t1")
    now = datetime.now(UTC)
    gold.store.record_progress(
        StreamProgress(query="silver.orders", batch_id=3, records=9, at=now, heartbeat_at=now)
    )
    entry = json.loads(run("status", "--json").output)
    (view,) = [one for one in entry["views"] if one["view"] == "totals"]
    assert (view["freshness"], view["published_version"]) == ("current", 0)
    assert view["last_attempt"]["status"] == AttemptStatus.PUBLISHED
    (stream,) = entry["streams"]
    assert (stream["query"], stream["batch_id"], stream["state"]) == ("silver.orders", 3, "running")
    history = json.loads(run("status", "totals", "--json").output)
    assert [one["tick"] for one in history["attempts"]] == ["t1"]


def test_status_of_an_unknown_view_suggests_one(run: Any) -> None:
    error = problem_of(run("status", "total"))
    assert isinstance(error, ViewUnknownError)
    assert error.hint == 'Did you mean "totals"?'


def test_status_for_people(gold: GoldProject, run: Any) -> None:
    gold.refresh("totals", "t1")
    shown = run("status").output
    for part in ("totals", "current", "No stream has reported yet"):
        assert part in shown


def test_a_query_reads_gold_and_silver_together(gold: GoldProject, run: Any) -> None:
    gold.refresh("totals", "t1")
    sql = """
        SELECT o.order_id, t.customer, o.amount
        FROM gold.totals AS t JOIN silver.orders AS o ON o.customer = t.customer
        ORDER BY o.order_id LIMIT 1
    """
    result = run("query", sql, "--format", "json")
    assert json.loads(result.stdout) == [{"order_id": 1, "customer": "ann", "amount": "10.00"}]


def test_rows_beyond_the_limit_are_mentioned(gold: GoldProject, run: Any) -> None:
    result = run("query", "SELECT order_id FROM silver.orders", "-f", "csv", "--limit", "1")
    assert len(list(csv.reader(result.stdout.splitlines()))) == 2
    assert "there are more" in result.stderr
    everything = run("query", "SELECT order_id FROM silver.orders", "-f", "csv", "--limit", "0")
    assert len(everything.stdout.splitlines()) > 2
    assert "there are more" not in everything.stderr


def test_a_table_is_read_at_the_version_that_the_query_names(gold: GoldProject, run: Any) -> None:
    count = "SELECT count(*) AS n FROM silver.orders"
    (before,) = json.loads(run("query", count, "-f", "json").stdout)
    gold.append("silver.orders", ONE_MORE)
    (now,) = json.loads(run("query", count, "-f", "json").stdout)
    (then,) = json.loads(run("query", f"{count} VERSION AS OF 0 AS o", "-f", "json").stdout)
    assert (before["n"], now["n"]) == (then["n"], then["n"] + 1)
    written = Path(gold.location("silver.orders"), "_delta_log", f"{0:020}.json").stat().st_mtime
    moment = datetime.fromtimestamp(written, UTC) + timedelta(milliseconds=1)
    at = f"{count} TIMESTAMP AS OF '{moment:%Y-%m-%d %H:%M:%S.%f}' AS o"
    assert json.loads(run("query", at, "-f", "json").stdout) == [then]


def test_personal_data_is_masked_unless_it_is_asked_for(gold: GoldProject, run: Any) -> None:
    columns = tuple(Column(name=name, type="", pii=True) for name in ("customer", "amount"))
    gold.manifest.gold["totals"] = gold.manifest.gold["totals"].model_copy(
        update={"columns": columns}
    )
    gold.refresh("totals", "t1")
    sql = "SELECT * FROM gold.totals AS t ORDER BY t.customer NULLS FIRST, t.orders"
    shown = json.loads(run("query", sql, "-f", "json").stdout)
    assert shown == [
        {"customer": name, "orders": 1, "amount": None} for name in (None, "***", "***")
    ]
    plain = "SELECT t.amount FROM gold.totals AS t WHERE t.customer = 'ann'"
    assert json.loads(run("query", plain, "-f", "json").stdout) == []
    assert json.loads(run("query", plain, "-f", "json", "--pii").stdout) == [{"amount": "10.00"}]


def test_a_version_that_was_removed_is_an_error(gold: GoldProject, run: Any) -> None:
    location = gold.location("silver.orders")
    gold.execute("DELETE FROM {} WHERE order_id = 1", "silver.orders")
    for file in needless_files(location):
        Path(file).unlink()
    rows = "SELECT * FROM silver.orders VERSION AS OF {} AS o"
    assert run("query", rows.format(1)).exit_code == 0
    for version in (0, 9):
        error = problem_of(run("query", rows.format(version)))
        assert isinstance(error, VersionNotKeptError), error
        assert "maintenance.retention_days" in (error.hint or "")


def needless_files(location: str) -> list[str]:
    """The files that only older versions need."""
    newest = set(DeltaTable(location).file_uris())
    older = set(DeltaTable(location, version=0).file_uris())
    return sorted(older - newest)


def test_a_query_that_runs_away_is_stopped(gold: GoldProject, run: Any) -> None:
    endless = "SELECT sum(r.id % 7) AS s FROM range(20000000000) AS r"
    error = problem_of(run("query", endless, "--seconds", "1"))
    assert isinstance(error, QueryTimedOutError)
    assert error.seconds == 1
    # The session goes on.
    assert run("query", "SELECT 1 AS a", "--seconds", "0", "-f", "csv").stdout == '"a"\n1\n'


def test_ops_tables_match_the_status_command(gold: GoldProject, run: Any) -> None:
    gold.refresh("totals", "t1")
    sql = """
        SELECT f.table_name, f.freshness, f.complete_until > f.published_at AS complete,
          r.status, r.started_at <= r.updated_at AS in_order, l.reads
        FROM ops.freshness AS f
        JOIN ops.refreshes AS r ON r.published_version = f.published_version
        JOIN ops.lineage AS l ON l.table_name = f.table_name
        LEFT JOIN ops.verdicts AS v ON v.table_name = f.table_name AND NOT v.success
        LEFT JOIN ops.quarantine AS q ON q.table_name = l.reads
        WHERE l.steps = 1 AND v.table_name IS NULL AND q.reason IS NULL
    """
    assert json.loads(run("query", sql, "-f", "json").stdout) == [
        {
            "table_name": "gold.totals",
            "freshness": "current",
            "complete": True,
            "status": "published",
            "in_order": True,
            "reads": "silver.orders",
        }
    ]
    columns = run("query", "SELECT ops.lineage.steps FROM ops.lineage", "-f", "csv")
    assert columns.stdout.splitlines()[0] == '"steps"'


def test_the_pages_question_about_ops_is_answered(gold: GoldProject, run: Any) -> None:
    [sql] = re.findall(r"^```sql\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    gold.view("user_dashboard", "SELECT * FROM gold.totals AS t", inputs=["gold.totals"])
    gold.refresh("totals", "t1")
    assert json.loads(run("query", sql, "-f", "json").stdout) == []
    gold.append("silver.orders", ONE_MORE)
    [row] = json.loads(run("query", sql, "-f", "json").stdout)
    assert (row["table_name"], row["freshness"]) == ("gold.totals", "behind")


def test_the_shell_answers_queries_until_its_input_ends(gold: GoldProject, run: Any) -> None:
    gold.refresh("totals", "t1")
    put_compiled(gold.settings, gold.manifest)
    typed = "SELECT no_such_column\nFROM gold.totals;\nSELECT t.customer\nFROM gold.totals AS t;"
    arguments = ["--project", str(gold.settings.project_dir), "shell", "--limit", "1"]
    answer = CliRunner().invoke(app, arguments, input=typed)
    assert "QUERY_COLUMN_UNKNOWN" in answer.stderr
    assert "there are more" in answer.stderr
    assert "customer" in answer.stdout
    assert "1 row" in answer.stdout
    assert answer.exit_code == 1


def test_parquet_needs_a_file(gold: GoldProject, run: Any, tmp_path: Path) -> None:
    assert run("query", "SELECT 1 AS a", "-f", "parquet").exit_code == 2
    run("query", "SELECT 1 AS a", "-f", "parquet", "-o", str(tmp_path / "a.parquet"))
    assert pq.read_table(tmp_path / "a.parquet").to_pylist() == [{"a": 1}]


def test_the_sql_can_be_shown_without_running_it(gold: GoldProject, run: Any) -> None:
    shown = run("query", "SELECT * FROM silver.orders;", "--sql").stdout
    assert shown == (
        f"SELECT * FROM delta.`{gold.location('silver.orders')}` VERSION AS OF 0 AS orders\n"
    )


def test_the_standard_input_can_hold_the_query(gold: GoldProject, run: Any) -> None:
    put_compiled(gold.settings, gold.manifest)
    arguments = ["--project", str(gold.settings.project_dir), "query", "-", "-f", "csv"]
    assert CliRunner().invoke(app, arguments, input="SELECT 7 AS a").stdout == '"a"\n7\n'


def test_a_delete_is_refused_before_it_runs(gold: GoldProject, run: Any) -> None:
    location = gold.location("silver.orders")
    assert isinstance(problem_of(run("query", "DELETE FROM silver.orders")), QueryNotReadOnlyError)
    assert tables.read(gold.spark, location).count() > 0


@pytest.mark.parametrize("name", HIDDEN)
def test_statements_hidden_in_comments_are_refused(
    gold: GoldProject, run: Any, tmp_path: Path, name: str
) -> None:
    secret, output = tmp_path / "secret", tmp_path / "output"
    secret.write_text("a secret")
    table = gold.location("silver.orders")
    sql = HIDDEN[name].format(secret=secret, output=output, table=table, bronze=table)
    assert problem_of(run("query", sql)).condition == "SQL_SYNTAX"
    explained = problem_of(run("query", f"EXPLAIN {sql}")).condition
    assert explained in {"SQL_SYNTAX", "QUERY_NOT_READ_ONLY"}
    arguments = ["--project", str(gold.settings.project_dir), "shell"]
    answer = CliRunner().invoke(app, arguments, input=f"{sql}\n;\n")
    assert "[SQL_SYNTAX]" in answer.stderr
    assert answer.exit_code == 1
    assert not output.exists()


def test_spark_refuses_what_the_gate_would_let_pass(gold: GoldProject, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a secret")
    query = PinnedQuery(PLAIN["a file"].format(secret=tmp_path / "secret"))
    with pytest.raises(QueryNotReadOnlyError, match="which is no table of the project"):
        run_query(gold.spark, query, limit=1, seconds=0)


def test_a_declared_table_that_was_never_written_is_named(run: Any) -> None:
    error = problem_of(run("query", "SELECT * FROM gold.totals"))
    assert isinstance(error, TableNotWrittenError)
    assert str(error.table) == "gold.totals"


@pytest.mark.parametrize(
    ("sql", "cause"),
    [
        ("SELECT CAST('x' AS INT) AS a", "CAST_INVALID_INPUT"),
        ("SELECT 1 / (order_id - order_id) AS a FROM silver.orders", "DIVIDE_BY_ZERO"),
        ("SELECT customer FROM silver.orders GROUP BY order_id", "MISSING_AGGREGATION"),
        ("SELECT order_id + DATE'2024-01-01' AS a FROM silver.orders", "DATATYPE_MISMATCH"),
    ],
)
def test_an_error_of_spark_is_one_sentence(run: Any, sql: str, cause: str) -> None:
    error = problem_of(run("query", sql))
    assert isinstance(error, QueryRejectedError)
    assert error.spark_condition.startswith(cause)
    assert error.hint
    assert len(error.render()) < 600
    for noise in ("\n", "JVM", "SQLSTATE", "Relation", "java."):
        assert noise not in error.primary


def test_a_misspelt_column_is_reported_with_a_suggestion(run: Any) -> None:
    error = problem_of(run("query", "SELECT o.amounts FROM silver.orders AS o"))
    assert isinstance(error, QueryColumnUnknownError)
    assert error.column == "o.amounts"
    assert 'Did you mean "amount"?' in (error.hint or "")
    assert len(error.render().splitlines()) == 2


def test_a_misspelt_function_is_reported_with_a_suggestion(run: Any) -> None:
    error = problem_of(run("query", "SELECT date_trunk('DAY', current_date()) AS a"))
    assert isinstance(error, QueryFunctionUnknownError)
    assert error.hint == 'Did you mean "date_trunc"?'


def test_the_page_shows_what_the_last_publication_changed(gold: GoldProject, run: Any) -> None:
    gold.refresh("totals", "t1")
    gold.append("silver.orders", ONE_MORE)
    gold.refresh("totals", "t2")
    # The table is there, and no stream of this project writes it.
    gold.manifest.silver.clear()
    assert run("page").exit_code == 0
    text = gold.settings.status_page.read_text(encoding="utf-8")
    row = text.partition('<tr id="gold.totals">')[2].partition("</tr>")[0]
    assert '<span class="badge good">current</span>' in row
    assert '<td data-head="24 hours">2 attempts</td>' in row
    version = log.table_version(gold.refresher.context.published_at("totals"))
    assert version is not None
    rows = rows_of_commit(gold.refresher.context.published_at("totals"), version.version)
    assert rows
    assert f'<td data-head="rows changed">{rows}</td>' in row
