"""Gold views that follow the changes of their inputs, against their SQL."""

from __future__ import annotations

import random

import pytest

from spark_jobs.gold.refresh.ledger import past_refreshes
from spark_jobs.graph.maintenance.reach import NO_ROWS, RowsMoved
from spark_jobs.state.attempts import AttemptStatus
from spark_jobs.storage import log
from spark_jobs.storage.feed import change_feed
from spark_jobs.storage.history import rows_changed
from tests.spark.gold_project import GoldProject

pytestmark = pytest.mark.usefixtures("each_engine")

ORDERS = """SELECT order_id, user_id, amount, status, CAST(amount AS DECIMAL(9,2)) AS price
FROM VALUES {} AS v(order_id, user_id, amount, status)"""
USERS = "SELECT * FROM VALUES {} AS v(user_id, segment)"
FIRST_ORDERS = ORDERS.format(
    "(1, 1, 10, 'paid'), (2, 1, 20, 'paid'), (3, 2, 5, 'open'), (4, NULL, 7, 'paid'), "
    "(5, 2, NULL, 'paid'), (5, 2, NULL, 'paid')"
)
FIRST_USERS = USERS.format("(1, 'gold'), (2, 'basic'), (3, NULL)")

# So that no test takes minutes on a slow machine.
PARTS = 4
# The parts that are not in the long tier, with their marks.
SHORT = {1: (), PARTS - 1: pytest.mark.both_engines}
VIEWS = {
    "filtered": "SELECT o.order_id, o.amount FROM silver.sales AS o WHERE o.status = 'paid'",
    "multiset": "SELECT o.status, o.amount FROM silver.sales AS o",
    "joined": "SELECT o.order_id, u.segment FROM silver.sales AS o "
    "JOIN silver.people AS u ON u.user_id = o.user_id",
    "outer_joined": "SELECT u.user_id, u.segment, o.amount FROM silver.people AS u "
    "LEFT JOIN silver.sales AS o ON u.user_id = o.user_id AND o.status = 'paid'",
    "full_joined": "SELECT u.segment, o.amount FROM silver.people AS u "
    "FULL JOIN silver.sales AS o ON u.user_id = o.user_id",
    "grouped": "SELECT o.user_id, COUNT(*) AS orders, SUM(o.amount) AS total, "
    "MAX(o.amount) AS most FROM silver.sales AS o GROUP BY o.user_id",
    "joined_groups": "SELECT u.segment, o.status, COUNT(DISTINCT o.user_id) AS users, "
    "AVG(o.amount) AS mean FROM silver.sales AS o JOIN silver.people AS u "
    "ON u.user_id = o.user_id GROUP BY u.segment, o.status HAVING COUNT(*) > 0",
    "sums": "SELECT o.status, COUNT(*) AS orders, SUM(o.price) AS total, AVG(o.price) AS mean, "
    "COUNT(o.amount) AS known, SUM(o.amount) AS amount, SUM(o.price / 3) AS thirds "
    "FROM silver.sales AS o GROUP BY o.status",
    "distinct_rows": "SELECT DISTINCT o.status FROM silver.sales AS o",
    "best": "SELECT o.user_id, SUM(o.price) AS total FROM silver.sales AS o GROUP BY o.user_id "
    "ORDER BY total DESC, o.user_id LIMIT 2",
    "at_mean": "SELECT u.user_id FROM silver.people AS u JOIN (SELECT o.user_id, SUM(o.amount) "
    "AS total FROM silver.sales AS o GROUP BY o.user_id) AS s ON s.user_id = u.user_id "
    "WHERE s.total > 5",
    "everything": "SELECT COUNT(*) AS orders, SUM(o.price) AS total, AVG(o.amount) AS mean, "
    "MIN(o.price) AS least, MAX(o.order_id) AS newest, MAX(u.segment) AS text "
    "FROM silver.sales AS o JOIN silver.people AS u ON u.user_id = o.user_id",
    "without": "SELECT u.user_id FROM silver.people AS u WHERE NOT EXISTS "
    "(SELECT 1 FROM silver.sales AS o WHERE o.user_id = u.user_id)",
    "not_in": "SELECT u.user_id FROM silver.people AS u WHERE u.user_id NOT IN "
    "(SELECT o.user_id FROM silver.sales AS o WHERE o.status = 'paid')",
    "above_mean": "SELECT o.order_id FROM silver.sales AS o WHERE o.amount >= "
    "(SELECT AVG(p.amount) FROM silver.sales AS p WHERE p.user_id = o.user_id)",
    "ranked": "SELECT o.order_id, o.user_id, RANK() OVER (PARTITION BY o.user_id "
    "ORDER BY o.amount) AS place FROM silver.sales AS o",
    "rolled_up": "SELECT o.user_id, o.status, COUNT(*) AS n FROM silver.sales AS o "
    "GROUP BY ROLLUP (o.user_id, o.status)",
    "either": "SELECT o.user_id FROM silver.sales AS o UNION SELECT u.user_id "
    "FROM silver.people AS u",
    "only_users": "SELECT u.user_id FROM silver.people AS u EXCEPT ALL SELECT o.user_id "
    "FROM silver.sales AS o",
    "counted": "SELECT u.user_id, u.segment, COUNT(o.amount) AS orders, SUM(o.price) AS total "
    "FROM silver.people AS u LEFT JOIN silver.sales AS o ON o.user_id = u.user_id "
    "AND o.status = 'paid' GROUP BY u.user_id, u.segment",
    "both": "SELECT u.user_id FROM silver.people AS u INTERSECT SELECT o.user_id "
    "FROM silver.sales AS o",
    "users": "SELECT COUNT(DISTINCT o.user_id) AS users, SUM(DISTINCT o.amount) AS amounts, "
    "COUNT(*) AS orders FROM silver.sales AS o",
    "asked": "SELECT u.user_id, IF(EXISTS (SELECT 1 FROM silver.sales AS o "
    "WHERE o.user_id = u.user_id), 1, 0) AS buys, (SELECT o.price FROM silver.sales AS o "
    "ORDER BY o.order_id DESC, o.price DESC LIMIT 1) AS price, "
    "d.users FROM silver.people AS u CROSS JOIN "
    "(SELECT COUNT(DISTINCT o.user_id) AS users FROM silver.sales AS o) AS d",
    # Spark says false where a NULL is compared.
    "found_in": "SELECT u.user_id, u.user_id IN (SELECT o.user_id FROM silver.sales AS o) AS buys, "
    "IF(NOT u.user_id IN (SELECT o.amount FROM silver.sales AS o), 1, 0) AS free "
    "FROM silver.people AS u",
}


@pytest.fixture
def project(gold: GoldProject) -> GoldProject:
    gold.append("silver.sales", FIRST_ORDERS)
    gold.append("silver.people", FIRST_USERS)
    for name, query in VIEWS.items():
        gold.view(
            name, query, inputs=("silver.sales", "silver.people")[: _inputs(query)], maintained=True
        )
    return gold


def _inputs(query: str) -> int:
    return 2 if "silver.people" in query else 1


def change(project: GoldProject, rng: random.Random, step: int) -> None:
    """Insert, update and delete at random."""
    rows = ", ".join(
        f"({rng.randint(1, 9)}, {rng.choice(['1', '2', '3', 'NULL'])}, "
        f"{rng.choice(['5', '10', 'NULL'])}, '{rng.choice(['paid', 'open'])}')"
        for _ in range(3)
    )
    project.append("silver.sales", ORDERS.format(rows))
    project.execute(
        f"UPDATE {{}} SET amount = {step}, price = {step} + 0.25 WHERE order_id % 3 = {step % 3}",
        "silver.sales",
    )
    project.execute(f"DELETE FROM {{}} WHERE order_id = {rng.randint(1, 9)}", "silver.sales")
    if step % 2:
        project.execute(f"DELETE FROM {{}} WHERE user_id = {rng.randint(1, 3)}", "silver.people")
        project.append("silver.people", USERS.format(f"({rng.randint(1, 4)}, 'new')"))


@pytest.mark.parametrize(
    "part",
    [pytest.param(one, marks=SHORT.get(one, pytest.mark.long)) for one in range(PARTS)],
)
def test_every_shape_of_view_follows_changes_and_equals_its_sql(
    project: GoldProject, part: int
) -> None:
    rng = random.Random(7 + part)
    names = [name for index, name in enumerate(VIEWS) if index % PARTS == part]
    for name in names:
        project.refresh(name, "t0")
    for step in (1, 2):
        change(project, rng, step)
        for name in names:
            outcome = project.refresh(name, f"t{step}")
            assert outcome.plan.word in {"incremental", "skip"}, (name, outcome.plan.line)
            project.assert_right(name)


def test_aggregate_state_of_a_refresh_that_was_not_published_are_not_used(
    project: GoldProject,
) -> None:
    project.refresh("sums", "t0")
    for step in (1, 2):
        project.append("silver.sales", ORDERS.format(f"({step}, 1, {step}, 'paid')"))
        lost = project.refresher.plan("sums", tick=f"lost{step}")
        project.refresher.stage(lost.attempt_id)
        project.append("silver.sales", ORDERS.format(f"({step}, 1, {step}, 'open')"))
        assert project.refresh("sums", f"t{step}").plan.word == "incremental"
        project.assert_right("sums")


def test_rows_that_did_not_change_are_not_in_the_change_feed(project: GoldProject) -> None:
    project.refresh("grouped", "t0")
    project.append("silver.sales", ORDERS.format("(9, 1, 1, 'paid')"))
    project.refresh("grouped", "t1")
    found = sorted((row["_change_type"], row["user_id"]) for row in project.changes("grouped", 1))
    assert found == [("delete", 1), ("insert", 1)]


def test_insertions_into_a_view_without_groups_are_appended(project: GoldProject) -> None:
    project.refresh("filtered", "t0")
    project.append("silver.sales", ORDERS.format("(9, 1, 1, 'paid')"))
    outcome = project.refresh("filtered", "t1")
    assert outcome.plan.word == "incremental"
    assert [row["_change_type"] for row in project.changes("filtered", 1)] == ["insert"]


def test_past_refreshes_record_who_computed_the_state(project: GoldProject) -> None:
    project.refresh("sums", "t0")
    context = project.refresher.context
    for step in (1, 2):
        project.append("silver.sales", ORDERS.format(f"({step}, 1, {step}, 'paid')"))
        assert project.refresh("sums", f"t{step}").plan.word == "incremental"
    past = past_refreshes(context, "sums")
    assert [one.incremental for one in past] == [True, True, False]
    assert [one.counted for one in past] == [False, True, False]


def test_a_change_of_columns_that_a_view_does_not_read_moves_versions_and_no_row(
    project: GoldProject,
) -> None:
    project.view("unmaintained", VIEWS["filtered"], inputs=("silver.sales",))
    names = ("filtered", "grouped", "distinct_rows", "unmaintained")
    for name in names:
        project.refresh(name, "t0")
    project.execute("UPDATE {} SET price = price + 1", "silver.sales")
    sales = project.location("silver.sales")
    moved = log.table_version(sales)
    assert moved is not None
    feed = change_feed(sales, after=moved.version - 1, upto=moved.version, columns=None)
    assert feed is not None, "Spark's own files can be counted without Spark"
    assert feed.net({"order_id", "user_id", "amount", "status"}) == NO_ROWS
    assert feed.net({"price"}) == RowsMoved(4, 4), "of six rows two have no price"
    for name in names:
        outcome = project.refresh(name, "t1")
        assert outcome.plan.word == ("full" if name == "unmaintained" else "incremental"), name
        assert (outcome.status, outcome.changed) == (AttemptStatus.PUBLISHED, False), name
        vector = project.publications(name)[-1]["vector"]
        assert vector["silver.sales"]["version"] == moved.version, name
        assert outcome.version is not None
        # What reads the view finds nothing to do, and so does the view's own next refresh.
        location = project.location(f"gold.{name}")
        assert not rows_changed(location, after=outcome.version - 1, upto=outcome.version), name
        assert project.reason(name) == "NO_UPSTREAM_CHANGE", name
