"""A view's whole content in DuckDB's words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_jobs.gold.engine.database import Duck
from spark_jobs.graph.dialect import parse
from spark_jobs.graph.duck.errors import NotTranslatedError
from spark_jobs.graph.duck.kinds import BIGINT, DATE, INT
from spark_jobs.graph.duck.queries import translated
from spark_jobs.graph.duck.remembered import remembered_translation
from spark_jobs.graph.duck.views import whole_view
from spark_jobs.graph.maintenance.subqueries import SEVERAL_ROWS
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


def test_a_scalar_subquery_of_several_rows_fails() -> None:
    view = entry("SELECT (SELECT t.i AS i FROM bronze.t AS t) AS i", reads_clock=False)
    found = whole_view(view, {"bronze.t": "rows"}, KNOWN, NOON)
    with duckdb.connect() as database:
        database.execute("CREATE TABLE rows AS SELECT 7 AS i, NULL::DATE AS day")
        assert database.execute(found.sql).fetchall() == [(7,)]
        database.execute("INSERT INTO rows FROM rows")
        with pytest.raises(duckdb.Error, match=SEVERAL_ROWS):
            database.execute(found.sql).fetchall()


def test_a_column_of_a_type_that_only_spark_reads_is_left_to_spark() -> None:
    view = entry("SELECT t.i AS i, t.m AS m FROM bronze.t AS t", reads_clock=False)
    with pytest.raises(NotTranslatedError, match="the type of m"):
        whole_view(view, {"bronze.t": "rows"}, {"rows": {"i": INT, "m": None}}, NOON)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT UPPER(rows.i) AS i FROM rows", "UPPER: UPPER(rows.i)"),
        ("SELECT i FROM rows TABLESAMPLE (1 ROWS)", "sample of table"),
        ("SELECT i FROM rows WHERE i LIKE 'a' ESCAPE '/'", "ESCAPE: i LIKE 'a' ESCAPE '/'"),
        ("SELECT COUNT_IF(DISTINCT i > 1) AS n FROM rows", "COUNT_IF(DISTINCT i > 1) of boolean"),
    ],
)
def test_the_reason_for_spark_is_said(query: str, reason: str) -> None:
    with pytest.raises(NotTranslatedError) as caught:
        translated(parse(query), KNOWN)
    assert caught.value.what == reason


@pytest.mark.parametrize("types", [{"n": "int"}, {"i": "array<int>"}])
def test_a_published_column_is_computed_and_of_a_type_that_duckdb_has(
    types: dict[str, str],
) -> None:
    found = translated(parse("SELECT i FROM rows"), KNOWN)
    with pytest.raises(NotTranslatedError, match="the published column"):
        found.typed_as(types)


def test_a_step_is_translated_once_for_the_same_columns() -> None:
    query = parse("SELECT i FROM rows")
    found = remembered_translation(query, KNOWN)
    assert remembered_translation(query, KNOWN) is found
    wider = remembered_translation(query, {"rows": {"i": BIGINT}})
    assert wider.columns == {"i": BIGINT}
    assert remembered_translation(query.copy(), KNOWN) == found


def test_a_view_without_a_clock_is_translated_once() -> None:
    view = entry("SELECT t.i AS i FROM bronze.t AS t", reads_clock=False)
    found = [
        whole_view(view, {"bronze.t": "rows"}, KNOWN, NOON + timedelta(hours=hours))
        for hours in range(2)
    ]
    assert found[0] is found[1]


def test_columns_that_duckdb_does_not_read_leave_the_others_to_it(tmp_path: Path) -> None:
    location = str(tmp_path / "t")
    write_deltalake(location, pa.table({"i": [1], "xs": [[2]], "file": [b"x"]}))
    with Duck(memory="100 MiB", spill=tmp_path / "spill") as duck:
        assert duck.content("t", location)
        found = translated(parse("SELECT i FROM t"), duck.known)
        assert duck.fetch(found.sql).to_pylist() == [{"i": 1}]
        for other in ("xs", "file"):
            with pytest.raises(NotTranslatedError):
                translated(parse(f"SELECT i FROM t WHERE {other} IS NULL"), duck.known)
