"""What docs/incremental.md says about rules, codes and numbers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sqlglot import exp

from spark_jobs.definitions.vocabulary import Strategy
from spark_jobs.gold.verify.published import Finding
from spark_jobs.gold.verify.sampling import BUCKETS, COMPARED, SMALL
from spark_jobs.graph.canonical import canonical_query
from spark_jobs.graph.dialect import parse, to_sql
from spark_jobs.graph.maintenance.describe import maintenance_of
from spark_jobs.graph.maintenance.reasons import Obstacle
from spark_jobs.graph.manifest import Maintenance, MaintenanceStrategy
from spark_jobs.graph.parsing import SqlText
from spark_jobs.graph.resolve import resolve
from spark_jobs.names import TableName
from spark_jobs.planning.breaker import FEWEST
from spark_jobs.planning.decision import ReasonCode
from spark_jobs.sections import BreakerSettings, GoldSettings, GraphSettings
from spark_jobs.settings import REPOSITORY
from spark_jobs.storage import policy

PAGE = Path(REPOSITORY, "docs", "incremental.md").read_text(encoding="utf-8")
TABLES = {
    "silver.orders": {
        "order_id": "bigint",
        "user_id": "bigint",
        "amount": "decimal(12,2)",
        "weight": "double",
        "at": "timestamp",
        "tags": "array<string>",
        "labels": "map<string,string>",
    },
    "silver.users": {"user_id": "bigint", "segment": "string"},
}
KEYS = {"silver.orders": frozenset(["order_id"]), "silver.users": frozenset(["user_id"])}
STRATEGIES = {strategy.words: strategy for strategy in MaintenanceStrategy}
# Words of the page for a view whose strategy is that of a part.
PARTS = {
    "as their aggregate": MaintenanceStrategy.AFFECTED_GROUP_RECOMPUTE,
    "as their aggregates": MaintenanceStrategy.AGGREGATE_STATE,
    "as other group keys": MaintenanceStrategy.AGGREGATE_STATE,
    "as in WHERE": MaintenanceStrategy.AGGREGATE_STATE,
    "as what is in them": MaintenanceStrategy.AGGREGATE_STATE,
}


def section(title: str) -> list[list[str]]:
    """The rows of the last table of a section, without its heading."""
    [text] = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    table = text.rpartition("|---|")[2]
    lines = [line for line in table.splitlines()[1:] if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def maintained(example: str) -> Maintenance:
    tree = parse(example)
    assert isinstance(tree, exp.Query)
    schemas = {TableName.parse(name): columns for name, columns in TABLES.items()}
    resolved = resolve(tree, schemas, SqlText("page", example), "page")
    assert not resolved.problems
    query = to_sql(canonical_query(tree, resolved.tree))
    return maintenance_of(query, types=TABLES, keys=KEYS)[0]


@pytest.mark.parametrize("row", section("Which SQL is maintained, and how"), ids=lambda row: row[0])
def test_an_example_has_its_strategy(row: list[str]) -> None:
    _, strategy, example = row
    assert maintained(example.strip("`")).rule is (STRATEGIES.get(strategy) or PARTS[strategy])


@pytest.mark.parametrize("row", section("Obstacles"), ids=lambda row: row[0])
def test_an_example_has_its_obstacle(row: list[str]) -> None:
    obstacle, _, example = row
    assert maintained(example.strip("`")).obstacle == obstacle.strip("`")


def test_every_code_is_explained() -> None:
    reasons = [row[0].strip("`") for row in section("Reason codes")]
    obstacles = [row[0].strip("`") for row in section("Obstacles")]
    strategies = [row[0].strip("`") for row in section("The key `strategy`")]
    assert set(ReasonCode) == set(reasons)
    assert set(Obstacle) == set(obstacles)
    assert strategies == list(Strategy)


def test_numbers_are_those_of_the_code() -> None:
    prose = " ".join(PAGE.split())
    assert f"{GoldSettings().float_tolerance:g}" in prose
    assert f"into {BUCKETS} buckets" in prose
    assert f"compares {COMPARED} of them" in prose
    assert f"below {SMALL:,} rows" in prose
    graph, breaker = GraphSettings(), BreakerSettings()
    assert f"`breaker.rows` ({breaker.rows:,})" in prose
    assert f"`breaker.times` ({breaker.times:g})" in prose
    assert f"Below {FEWEST} refreshes" in prose
    assert f"`graph.most_tiers` ({graph.most_tiers})" in prose
    assert f"`graph.most_readers` ({graph.most_readers})" in prose
    assert f"more than {policy.COUNTED.rows:,} rows" in prose
    assert Finding.EQUAL_WITHIN_TOLERANCE in prose
