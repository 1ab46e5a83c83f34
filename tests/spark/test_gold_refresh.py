"""What a refresh does to the published table, on real Delta tables."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import pytest
from pyspark.sql import DataFrame

from spark_jobs.gold.base.errors import QueryFailedError, UntypedColumnError, ViewUnknownError
from spark_jobs.gold.engine import spark as engine_module
from spark_jobs.graph.manifest import Column
from spark_jobs.quality.errors import GateBlockedError
from spark_jobs.state.attempts import AttemptStatus
from spark_jobs.storage import log, policy, tables
from spark_jobs.storage.history import rows_changed
from tests.spark.gold_project import GoldProject

FIRST = [(None, 1, None), ("ann", 1, Decimal("10.00")), ("bob", 1, Decimal("5.50"))]
NO_NULL_CUSTOMER = {
    "name": "totals",
    "expectations": [
        {
            "type": "expect_column_values_to_not_be_null",
            "kwargs": {"column": "customer"},
            "severity": "critical",
        }
    ],
}


def warning(suite: dict) -> dict:
    return {**suite, "expectations": [{**suite["expectations"][0], "severity": "warning"}]}


def test_a_view_is_built_skipped_and_built_again(gold: GoldProject) -> None:
    first = gold.refresh("totals", "t1")
    assert (first.plan.line, first.status) == ("full: first build", AttemptStatus.PUBLISHED)
    assert (first.rows, first.version, first.changed) == (3, 0, True)
    assert gold.rows("totals") == FIRST

    second = gold.refresh("totals", "t2")
    assert second.plan.line == "skip: no upstream change since silver.orders@0"
    assert second.status is AttemptStatus.SKIPPED
    assert log.table_version(gold.location("gold.totals")).version == 0

    gold.append(
        "silver.orders",
        "SELECT 4L AS order_id, 'ann' AS customer, CAST(1 AS DECIMAL(12, 2)) AS amount",
    )
    third = gold.refresh("totals", "t3")
    assert third.plan.reason.code == "INPUT_CHANGED_NO_RULE"
    assert "silver.orders@0→@1" in third.plan.line
    assert gold.rows("totals")[1] == ("ann", 2, Decimal("11.00"))
    gold.assert_right("totals")


def test_the_commit_carries_the_watermark_and_the_table_its_columns(gold: GoldProject) -> None:
    gold.view("described", gold.manifest.gold["totals"].query, describe={"orders": "How many."})
    outcome = gold.refresh("described", "t1")
    (metadata,) = gold.publications("described")
    orders = log.table_version(gold.location("silver.orders"))
    assert metadata["vector"] == {"silver.orders": {"id": orders.table_id, "version": 0}}
    assert metadata["attempt"] == outcome.plan.attempt_id
    assert (metadata["epoch"], metadata["sequence"], metadata["rule"]) == (1, 1, "full")
    location = gold.location("gold.described")
    assert log.transaction_version(location, "gold/described/1") == 1
    assert [(c.name, c.type, c.description) for c in log.schema(location)] == [
        ("customer", "string", None),
        ("orders", "bigint", "How many."),
        ("amount", "decimal(22,2)", None),
    ]
    assert gold.changes("described", 0), "the change feed is on from the first commit"


def test_a_type_that_the_declaration_does_not_give_is_reported(gold: GoldProject) -> None:
    declared = [Column(name="customer", type="string"), Column(name="orders", type="int")]
    gold.view("typed", gold.manifest.gold["totals"].query, columns=declared)
    outcome = gold.refresh("typed", "t1")
    assert outcome.status is AttemptStatus.PUBLISHED
    verdict = gold.store.attempt(outcome.plan.attempt_id).verdict
    assert verdict is not None
    assert (verdict["outcome"], verdict["failed"]) == ("warned", 1)
    assert verdict["results"][-1]["samples"] == ["orders is bigint, declared int"]


def test_an_equal_result_moves_the_watermark_and_no_row(gold: GoldProject) -> None:
    gold.refresh("totals", "t1")
    gold.view("shares", "SELECT t.orders AS orders FROM gold.totals AS t", inputs=("gold.totals",))
    gold.refresh("shares", "t1")
    again = gold.refresh("totals", "t2", force=True)
    assert (again.status, again.changed, again.version) == (AttemptStatus.PUBLISHED, False, 1)
    assert not rows_changed(gold.location("gold.totals"), after=0, upto=1)
    assert gold.changes("totals", 1) == []
    assert [one["sequence"] for one in gold.publications("totals")] == [1, 2]
    assert gold.reason("shares") == "NO_UPSTREAM_CHANGE"
    gold.assert_right("totals")


@pytest.mark.parametrize("small", [True, False])
def test_only_rows_that_differ_are_fed(
    gold: GoldProject, monkeypatch: pytest.MonkeyPatch, small: bool
) -> None:
    by_spark: list[DataFrame] = []
    difference = engine_module.multiset_difference

    def noted(expected: DataFrame, actual: DataFrame) -> DataFrame:
        by_spark.append(expected)
        return difference(expected, actual)

    monkeypatch.setattr(engine_module, "multiset_difference", noted)
    if not small:
        monkeypatch.setattr(policy, "RESULT", policy.NOTHING)
    query = "SELECT o.customer AS customer FROM silver.orders AS o"
    gold.view("copies", query, inputs=("silver.orders",))
    gold.refresh("copies", "t1")
    for order, name in ((4, "ann"), (5, "eve")):
        gold.append(
            "silver.orders",
            f"SELECT {order}L AS order_id, '{name}' AS customer, "
            "CAST(1 AS DECIMAL(12, 2)) AS amount",
        )
    gold.refresh("copies", "t2")
    fed = Counter((row["_change_type"], row["customer"]) for row in gold.changes("copies", 1))
    # A table without a key has no copy more: all copies are replaced.
    assert fed == Counter({("delete", "ann"): 1, ("insert", "ann"): 2, ("insert", "eve"): 1})
    assert bool(by_spark) is not small
    gold.assert_right("copies")


def test_a_critical_failure_keeps_the_old_content(gold: GoldProject) -> None:
    gold.refresh("totals", "t1")
    gold.view("totals", gold.manifest.gold["totals"].query, suite=NO_NULL_CUSTOMER)
    gold.append(
        "silver.orders",
        "SELECT 4L AS order_id, 'ann' AS customer, CAST(1 AS DECIMAL(12, 2)) AS amount",
    )
    with pytest.raises(GateBlockedError) as blocked:
        gold.refresh("totals", "t2")
    assert [one.column for one in blocked.value.verdict.blocking] == ["customer"]
    assert gold.rows("totals") == FIRST
    (attempt,) = gold.attempts("totals", AttemptStatus.BLOCKED)
    assert attempt.verdict["outcome"] == "blocked"
    staged = gold.refresher.context.lake.staging("totals", attempt.attempt_id)
    assert log.size(staged).rows == 3, "the rejected result stays to be looked at"

    with pytest.raises(GateBlockedError):
        gold.refresh("totals", "t2")
    gold.view("totals", gold.manifest.gold["totals"].query, suite=warning(NO_NULL_CUSTOMER))
    outcome = gold.refresh("totals", "t3")
    assert outcome.status is AttemptStatus.PUBLISHED
    assert gold.publications("totals")[-1]["verdict"]["outcome"] == "warned"


def test_views_of_one_tick_share_their_inputs(gold: GoldProject) -> None:
    gold.view("ids", "SELECT o.order_id AS order_id FROM silver.orders AS o")
    gold.view(
        "customers",
        "SELECT t.customer AS customer FROM gold.totals AS t",
        inputs=("gold.totals",),
    )
    gold.refresh("totals", "t1")
    gold.append(
        "silver.orders",
        "SELECT 4L AS order_id, 'eve' AS customer, CAST(1 AS DECIMAL(12, 2)) AS amount",
    )
    gold.refresh("ids", "t1")
    assert len(gold.rows("ids")) == 3, "the tick has pinned the orders before the fourth"
    gold.refresh("totals", "t2")
    gold.refresh("customers", "t1")
    assert ("eve",) not in gold.rows("customers"), "t1 published the totals without eve"
    gold.refresh("customers", "t2")
    assert ("eve",) in gold.rows("customers")
    late = gold.refresh("totals", "t1")
    assert late.plan.line == "skip: a later tick has published silver.orders@1"


def test_nothing_but_rows_counts_as_a_change(gold: GoldProject) -> None:
    gold.append(
        "silver.orders",
        "SELECT 4L AS order_id, 'ann' AS customer, CAST(1 AS DECIMAL(12, 2)) AS amount",
    )
    gold.refresh("totals", "t1")
    gold.execute("OPTIMIZE {}", "silver.orders")
    assert log.table_version(gold.location("silver.orders")).version == 2
    assert gold.reason("totals") == "NO_UPSTREAM_CHANGE"
    gold.execute("DELETE FROM {} WHERE order_id = 4", "silver.orders")
    assert gold.reason("totals") == "INPUT_CHANGED_NO_RULE"


def test_empty_inputs_give_an_empty_table(gold: GoldProject) -> None:
    gold.append("silver.nothing", "SELECT 1L AS id, CAST(NULL AS DATE) AS day WHERE FALSE")
    gold.view("none", "SELECT n.day AS day FROM silver.nothing AS n", inputs=("silver.nothing",))
    gold.view("count", "SELECT COUNT(*) AS n FROM silver.nothing AS n", inputs=("silver.nothing",))
    assert gold.refresh("none", "t1").rows == 0
    assert gold.refresh("count", "t1").rows == 1
    assert (gold.rows("none"), gold.rows("count")) == ([], [(0,)])
    gold.append("silver.nothing", "SELECT 1L AS id, CAST(NULL AS DATE) AS day")
    gold.refresh("none", "t2")
    assert gold.rows("none") == [(None,)]
    gold.execute("DELETE FROM {}", "silver.nothing")
    gold.refresh("none", "t3")
    assert gold.rows("none") == []
    gold.assert_right("none")


def test_duplicate_rows_are_kept_as_often_as_they_occur(gold: GoldProject) -> None:
    gold.view("multisets", "SELECT o.amount > 7 AS big FROM silver.orders AS o")
    gold.append(
        "silver.orders",
        "SELECT 4L AS order_id, 'ann' AS customer, CAST(10 AS DECIMAL(12, 2)) AS amount",
    )
    gold.refresh("multisets", "t1")
    assert gold.rows("multisets") == [(None,), (False,), (True,), (True,)]
    gold.assert_right("multisets")


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT o.order_id AS id, o.amount AS amount FROM silver.orders AS o", ["id", "amount"]),
        ("SELECT o.customer AS customer FROM silver.orders AS o", ["customer"]),
        ("SELECT CAST(o.order_id AS STRING) AS order_id FROM silver.orders AS o", ["order_id"]),
    ],
    ids=["added", "renamed", "retyped"],
)
def test_a_new_definition_replaces_rows_and_columns_at_once(
    gold: GoldProject, query: str, columns: list[str]
) -> None:
    gold.view("shaped", "SELECT o.order_id AS order_id FROM silver.orders AS o")
    gold.refresh("shaped", "t1")
    gold.view("shaped", query)
    assert gold.verify("shaped").finding == "DEFINITION_CHANGED"
    outcome = gold.refresh("shaped", "t2")
    assert outcome.plan.line == "full: definition changed"
    assert gold.frame("shaped").columns == columns
    assert log.table_version(gold.location("gold.shaped")).version == 1
    gold.assert_right("shaped")


def test_the_clock_is_fixed_at_the_plan(gold: GoldProject) -> None:
    query = "SELECT CURRENT_TIMESTAMP() AS seen, CURRENT_DATE AS day FROM silver.orders AS o"
    gold.view("clock", query, reads_clock=True)
    outcome = gold.refresh("clock", "t1")
    assert len(set(gold.rows("clock"))) == 1
    gold.assert_right("clock")
    assert gold.publications("clock")[0]["clock"] == outcome.plan.clock.isoformat()
    assert gold.reason("clock") == "CLOCK_MOVED"


def test_errors_are_named_and_recorded(gold: GoldProject) -> None:
    gold.view("void", "SELECT NULL AS nothing FROM silver.orders AS o")
    with pytest.raises(UntypedColumnError) as untyped:
        gold.refresh("void", "t1")
    assert untyped.value.columns == ("nothing",)
    gold.view("broken", "SELECT o.gone AS gone FROM silver.orders AS o")
    with pytest.raises(QueryFailedError):
        gold.refresh("broken", "t1")
    gold.view("zero", "SELECT 1 / (o.order_id - 1) AS x FROM silver.orders AS o")
    with pytest.raises(QueryFailedError) as failed:
        gold.refresh("zero", "t1")
    assert "DIVIDE_BY_ZERO" in failed.value.cause
    (attempt,) = gold.attempts("zero", AttemptStatus.FAILED)
    assert "DIVIDE_BY_ZERO" in attempt.error
    assert log.table_version(gold.location("gold.zero")) is None
    with pytest.raises(ViewUnknownError):
        gold.refresh("nothing_like_it", "t1")


def test_a_result_keeps_nothing_of_its_inputs_but_values(gold: GoldProject) -> None:
    location = gold.location("silver.mapped")
    frame = gold.spark.sql("SELECT 1L AS id, 'x' AS name")
    tables.append(frame, location, properties={"delta.columnMapping.mode": "name"})
    gold.execute("ALTER TABLE {} RENAME COLUMN name TO label", "silver.mapped")
    gold.view("m", "SELECT m.label AS label FROM silver.mapped AS m", inputs=("silver.mapped",))
    gold.refresh("m", "t1")
    assert gold.rows("m") == [("x",)]
    field = gold.frame("m").schema.fields[0]
    assert field.metadata == {}
    gold.assert_right("m")
