"""A view's whole content in DuckDB's words."""

from __future__ import annotations

from datetime import UTC, datetime

import duckdb
import pytest

from spark_jobs.graph.duck.errors import NotTranslatedError
from spark_jobs.graph.duck.kinds import DATE, INT
from spark_jobs.graph.duck.views import whole_view
from spark_jobs.graph.manifest import Column, GoldEntry, RefreshPolicy

NOON = datetime(2026, 1, 3, 12, tzinfo=UTC)
KNOWN = {"rows": {"i": INT, "day": DATE}}


def entry(query: str, *, reads_clock: bool) -> GoldEntry:
    return GoldEntry(
        name="recent",
        description="Recent rows.",
        owner="tests",
        refresh=RefreshPolicy.BULK,
        sql=query,
        query=query,
        inputs=("bronze.t",),
        columns=(Column(name="i", type="int"),),
        fingerprint="f",
        deterministic=True,
        reads_clock=reads_clock,
        file="sql/gold/recent.sql",
        tier=0,
    )


def test_a_view_that_reads_the_clock_sees_the_moment_of_the_refresh() -> None:
    query = "SELECT t.i AS i FROM bronze.t AS t WHERE t.day >= CURRENT_DATE()"
    view = entry(query, reads_clock=True)
    found = whole_view(view, {"bronze.t": "rows"}, KNOWN, NOON)
    with duckdb.connect() as database:
        days = "(1, DATE '2026-01-02'), (2, DATE '2026-01-03'), (3, NULL)"
        database.execute(f"CREATE TABLE rows AS SELECT * FROM (VALUES {days}) AS t(i, day)")
        assert database.execute(found.sql).fetchall() == [(2,)]
    assert found.columns == {"i": INT}


def test_a_view_without_a_rule_is_left_to_spark() -> None:
    view = entry("SELECT HASH(*) AS i FROM bronze.t AS t", reads_clock=False)
    with pytest.raises(NotTranslatedError, match="star"):
        whole_view(view, {"bronze.t": "rows"}, KNOWN, NOON)
