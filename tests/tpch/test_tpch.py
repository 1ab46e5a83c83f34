"""The queries of TPC-H as views: after each refresh set equal to their SQL, and to DuckDB."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.tpch.compare import delta_rows, difference
from benchmarks.tpch.project import NAMES
from spark_jobs.gold.verify.published import verify
from spark_jobs.graph.manifest import MaintenanceStrategy, Manifest
from tests.tpch.tpch_project import Tpch

# An outer join below two aggregates; `make test-tpch` asks for the other queries.
ONE = "q13"
GOLDEN = Path(__file__).with_name("maintenance.txt")


def test_there_are_22_queries() -> None:
    assert [f"q{number:02}" for number in range(1, 23)] == list(NAMES)


@pytest.mark.parametrize(
    "name", [one if one == ONE else pytest.param(one, marks=pytest.mark.long) for one in NAMES]
)
def test_view_equals_its_sql_and_duckdb_after_each_refresh_set(tpch: Tpch, name: str) -> None:
    view = tpch.view(name)
    context = tpch.refresher.context
    maintenance = context.entry(view).maintenance
    followed = maintenance is not None and maintenance.rule is not MaintenanceStrategy.FULL
    for state in range(len(tpch.states)):
        outcome = tpch.refresher.run(view, tick=f"t{state}")
        assert outcome.plan.word == ("incremental" if followed and state else "full"), (
            outcome.plan.line
        )
        published = delta_rows(context.published_at(view))
        assert difference(tpch.wanted(name, state), published) is None, state
    found = verify(context, view)
    assert found.passed, found


def test_maintenance_of_every_query_is_as_reviewed(manifest: Manifest) -> None:
    lines = []
    for name in NAMES:
        found = manifest.gold[Tpch.view(name)].maintenance
        assert found is not None
        lines.append(
            f"{name}  {found.rule.value}" + (f"  {found.obstacle}" if found.obstacle else "")
        )
        lines += [f"     {found.detail}"] if found.detail else []
        lines += [f"     key: {', '.join(found.key)}"] if found.key else []
        lines += [f"     {one.operator}: {one.rule}" for one in found.operators]
    text = "\n".join(lines) + "\n"
    if os.environ.get("REWRITE"):
        GOLDEN.write_text(text, encoding="utf-8")

    assert text == GOLDEN.read_text(encoding="utf-8")
