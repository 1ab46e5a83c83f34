from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_jobs.definitions.vocabulary import Severity
from spark_jobs.gold.base.errors import QueryFailedError
from spark_jobs.graph.manifest import Manifest
from spark_jobs.quality.verdict import ExpectationResult, Verdict
from spark_jobs.serving.project import OpenProject
from spark_jobs.serving.sql.ops_tables import OPS_TABLES
from spark_jobs.settings import REPOSITORY, load_settings
from spark_jobs.state.attempts import AttemptStatus, RefreshAttempt
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.lake import Lake
from tests.shipped import shipped_project

NOW = datetime(2024, 5, 2, 12, tzinfo=UTC)
RULE = ExpectationResult(
    position=0,
    type="expect_table_row_count_to_be_between",
    kwargs={"max_value": 1},
    column=None,
    severity=Severity.CRITICAL,
    success=False,
    observed=3,
    message="3 rows",
)


@pytest.fixture(scope="module")
def manifest() -> Manifest:
    return shipped_project()


@pytest.fixture
def project(tmp_path: Path, manifest: Manifest) -> Iterator[OpenProject]:
    """The shipped declarations over a lake of its own, with two attempts in the ledger."""
    settings = load_settings(REPOSITORY, state_dir=tmp_path, lake_root="", control_db="")
    with ControlStore.open(settings.control_url) as store:
        for number, status in enumerate((AttemptStatus.PUBLISHED, AttemptStatus.BLOCKED)):
            store.create_attempt(
                RefreshAttempt(
                    attempt_id=f"a{number}",
                    view="orders_by_status",
                    tick=f"t{number}",
                    status=status,
                    decision="full",
                    reason_code="first_build",
                    reason="nothing is published",
                    epoch=1,
                    started_at=NOW + timedelta(minutes=number),
                    updated_at=NOW + timedelta(minutes=number, seconds=30),
                    actual={"rows": 3, "seconds": {"plan": 0.5, "stage": 2.0}},
                    verdict=Verdict(table="t", suite="s", rows=3, results=(RULE,)).as_dict()
                    if number
                    else None,
                )
            )
        yield OpenProject(settings, manifest, store)


def read(project: OpenProject, name: str) -> list[dict[str, object]]:
    return OPS_TABLES[name].read(project, now=NOW).to_pylist()


def test_refreshes_are_the_ledgers_rows_the_newest_first(project: OpenProject) -> None:
    newest, oldest = read(project, "ops.refreshes")
    assert (newest["attempt_id"], oldest["attempt_id"]) == ("a1", "a0")
    assert (newest["table_name"], newest["status"]) == ("gold.orders_by_status", "blocked")
    assert (newest["seconds"], newest["rows"]) == (2.5, 3)
    assert newest["started_at"] == NOW + timedelta(minutes=1)


def test_an_error_over_personal_data_shows_no_value(project: OpenProject) -> None:
    said = str(QueryFailedError("v", "[CAST_INVALID_INPUT] The value 'ann@example.org' of ..."))
    blocked = "2 rules failed [GATE_BLOCKED]"
    for view in ("user_dashboard", "orders_by_status"):
        for error in (f"stage: {said}", blocked):
            project.store.create_attempt(
                RefreshAttempt(
                    attempt_id=f"{view} {len(error)}",
                    view=view,
                    tick="t",
                    status=AttemptStatus.FAILED,
                    epoch=1,
                    started_at=NOW,
                    updated_at=NOW,
                    error=error,
                )
            )
    found: dict[object, set[object]] = {}
    for row in read(project, "ops.refreshes"):
        found.setdefault(row["table_name"], set()).add(row["error"])
    told = "stage: the query of gold view 'v' failed [QUERY_FAILED] (CAST_INVALID_INPUT)"
    assert found["gold.user_dashboard"] == {told, blocked}
    assert f"stage: {said}" in found["gold.orders_by_status"]


def test_a_verdict_has_a_row_for_each_expectation(project: OpenProject) -> None:
    [row] = read(project, "ops.verdicts")
    assert (row["attempt_id"], row["outcome"], row["success"]) == ("a1", "blocked", False)
    assert (row["expectation"], row["observed"]) == (RULE.type, "3")


def test_freshness_has_every_gold_table(project: OpenProject) -> None:
    rows = {row["table_name"]: row for row in read(project, "ops.freshness")}
    assert set(rows) == {f"gold.{name}" for name in project.manifest.gold}
    one = rows["gold.orders_by_status"]
    assert (one["freshness"], one["complete_until"], one["blocked"]) == ("unpublished", None, True)
    assert one["target_seconds"] == project.manifest.gold["orders_by_status"].freshness_seconds


def test_lineage_goes_through_to_the_sources(project: OpenProject) -> None:
    rows = read(project, "ops.lineage")
    trending = {
        row["reads"]: row["steps"] for row in rows if row["table_name"].endswith("trending_titles")
    }
    assert trending["gold.content_popularity"] == 1
    assert trending["silver.view_events"] == 2
    assert trending["bronze.view_events"] == 3
    assert len({(row["table_name"], row["reads"]) for row in rows}) == len(rows)


def test_ops_quarantine_counts_reasons_without_payloads(project: OpenProject) -> None:
    assert read(project, "ops.quarantine") == []
    arrived = pa.array([NOW, NOW + timedelta(seconds=1)], pa.timestamp("us", "UTC"))
    rejected = pa.table({"reason": ["MALFORMED"] * 2, "arrived_at": arrived, "value": [b"x"] * 2})
    write_deltalake(Lake(project.settings.lake).quarantine("orders"), rejected)
    assert read(project, "ops.quarantine") == [
        {
            "table_name": "silver.orders",
            "reason": "MALFORMED",
            "records": 2,
            "latest_arrival": NOW + timedelta(seconds=1),
        }
    ]


def test_the_page_describes_every_column() -> None:
    page = Path(REPOSITORY, "docs", "analysts.md").read_text(encoding="utf-8")
    section = page.partition("## The state of the tables")[2].partition("\n## ")[0]
    described = {}
    for part in section.split("### ")[1:]:
        name, _, rest = part.partition("\n")
        described[name] = re.findall(r"^\| `(\w+)` \| (\w+) \| (.+) \|$", rest, re.MULTILINE)
        assert OPS_TABLES[name].description in rest
    assert described == {
        name: [(one.name, one.type, one.description) for one in table.columns]
        for name, table in OPS_TABLES.items()
    }
