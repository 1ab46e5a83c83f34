"""``assert_right`` fails where a published table is not its SQL: tests of refreshes rely on it."""

from __future__ import annotations

import json

import pytest

from spark_jobs.storage.tables import session_values
from tests.spark.gold_project import GoldProject

# Writes the table as a refresh would have, with other content.
FORGED = {
    "a row too few": "SELECT * FROM {0} WHERE customer <=> 'ann'",
    "a row twice": "SELECT * FROM {0} UNION ALL SELECT * FROM {0} WHERE customer = 'ann'",
    "a NULL too many": "SELECT customer, IF(customer = 'ann', NULL, orders) AS orders, amount "
    "FROM {0}",
    "another value": "SELECT customer, orders, amount + 1 AS amount FROM {0}",
}


@pytest.fixture
def published(gold: GoldProject) -> GoldProject:
    gold.refresh("totals", "t1")
    gold.assert_right("totals")
    return gold


@pytest.mark.parametrize("rows", FORGED.values(), ids=FORGED)
def test_other_rows_are_seen(published: GoldProject, rows: str) -> None:
    mark = published.publications("totals")[-1]
    conf = {"spark.databricks.delta.commitInfo.userMetadata": json.dumps(mark)}
    table = f"delta.`{published.location('gold.totals')}`"
    with session_values(published.spark, conf):
        published.spark.sql(f"INSERT OVERWRITE {table} {rows.format(table)}").collect()
    with pytest.raises(AssertionError, match="totals"):
        published.assert_right("totals")


def test_a_strangers_commit_another_definition_and_no_table_are_seen(
    published: GoldProject,
) -> None:
    query = published.manifest.gold["totals"].sql
    published.view("totals", query.replace("COUNT(*)", "COUNT(o.amount)"))
    with pytest.raises(AssertionError, match="with other SQL"):
        published.assert_right("totals")
    published.view("totals", query)
    published.execute("DELETE FROM {} WHERE customer = 'ann'", "gold.totals")
    with pytest.raises(AssertionError, match="after its publication"):
        published.assert_right("totals")
    published.view("absent", query)
    with pytest.raises(AssertionError, match="is not published"):
        published.assert_right("absent")
