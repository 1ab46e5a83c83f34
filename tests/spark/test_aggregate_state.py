"""Aggregate state that are many: a refresh appends to them, and readers add up."""

from __future__ import annotations

import pytest

from spark_jobs.gold.base.publications import latest_publication
from spark_jobs.gold.compute import state_location as groups
from spark_jobs.gold.compute.state_location import AggregateState
from spark_jobs.storage import policy
from spark_jobs.storage.policy import Limit
from tests.spark.gold_project import GoldProject

pytestmark = pytest.mark.usefixtures("each_engine")

SALES = """SELECT *, CAST(amount AS DECIMAL(9, 2)) / 3 AS price
FROM VALUES {} AS v(user_id, amount)"""
VIEWS = {
    "means": "SELECT s.user_id, COUNT(*) AS sales, AVG(s.price) AS mean, SUM(s.amount) AS total "
    "FROM silver.sales AS s GROUP BY s.user_id",
    "best": "SELECT s.user_id, SUM(s.price) AS total FROM silver.sales AS s GROUP BY s.user_id "
    "ORDER BY total DESC, s.user_id LIMIT 5",
    "above": "SELECT s.user_id, s.amount FROM silver.sales AS s WHERE s.price > "
    "(SELECT AVG(p.price) FROM silver.sales AS p WHERE p.user_id = s.user_id)",
}


@pytest.fixture
def project(gold: GoldProject, monkeypatch: pytest.MonkeyPatch) -> GoldProject:
    monkeypatch.setattr(policy, "STATE", Limit(rows=0))
    monkeypatch.setattr(policy, "CHANGED_PART", 1)
    monkeypatch.setattr(policy, "MOST_LAYERS", 2)
    rows = ", ".join(f"({user or 'NULL'}, {amount})" for user in range(40) for amount in (1, 5))
    gold.append("silver.sales", SALES.format(rows))
    for name, query in VIEWS.items():
        gold.view(name, query, inputs=("silver.sales",), maintained=True)
        gold.refresh(name, "first")
    return gold


def change(project: GoldProject, step: int) -> None:
    """A group comes, one goes, and some move."""
    project.append("silver.sales", SALES.format(f"({100 + step}, 2), (NULL, {step}), (1, NULL)"))
    project.execute(f"DELETE FROM {{}} WHERE user_id = {10 + step}", "silver.sales")
    project.execute(f"UPDATE {{}} SET amount = amount + 1 WHERE user_id = {step}", "silver.sales")


def kept(project: GoldProject, view: str) -> AggregateState:
    """The groups that belong to the newest publication."""
    context = project.refresher.context
    base = latest_publication(context.published_at(view))
    assert base is not None
    return groups.aggregate_state(context, base, view=view, name="state.0")


def test_many_groups_are_appended_to_until_they_are_rewritten(project: GoldProject) -> None:
    layers = []
    for step in range(1, 6):
        change(project, step)
        for view in VIEWS:
            assert project.refresh(view, f"t{step}").plan.word == "incremental"
            project.assert_right(view)
        layers.append(kept(project, "means").layers)
    # The first refresh counts the groups; each third one writes them again.
    assert layers == [0, 1, 2, 0, 1]


def test_nothing_is_built_on_what_an_unpublished_refresh_appended(project: GoldProject) -> None:
    for step in (1, 2):
        change(project, step)
        project.refresh("means", f"t{step}")
    change(project, 3)
    lost = project.refresher.plan("means", tick="lost")
    project.refresher.stage(lost.attempt_id)
    change(project, 4)
    assert project.refresh("means", "t4").plan.word == "incremental"
    assert kept(project, "means").layers == 0
    project.assert_right("means")
