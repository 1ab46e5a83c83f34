"""Queries that people type see personal data masked, whatever they do with it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_jobs.graph.manifest import Manifest
from spark_jobs.names import TableName
from spark_jobs.serving.sql.query import MaskedVersionError, pinned_query
from spark_jobs.storage.lake import Lake, TableLocations

USERS = TableName.parse("silver.users")


@pytest.fixture
def pinned(tmp_path: Path):
    rows = pa.table({"id": [7], "name": ["Ann"], "born": pa.array([1], pa.date32())})
    write_deltalake(tmp_path / "silver" / "users", rows)
    locations = TableLocations(
        Lake(str(tmp_path)), Manifest(project="p", sources={}, silver={}, gold={})
    )

    def make(text: str, *masked: str) -> str:
        found = pinned_query(text, locations, known=[USERS], masked={"silver.users": masked})
        return found.sql.replace(str(tmp_path), "")

    return make


def test_a_masked_column_is_masked_below_the_query(pinned) -> None:
    assert pinned("SELECT u.name FROM silver.users AS u WHERE u.name = 'Ann'", "name", "born") == (
        "SELECT u.name FROM (SELECT `id`, IF(`name` IS NULL, NULL, '***') AS `name`, "
        "CAST(NULL AS date) AS `born` FROM delta.`/silver/users` VERSION AS OF 0) AS u "
        "WHERE u.name = 'Ann'"
    )


def test_a_table_without_an_alias_keeps_its_name(pinned) -> None:
    sql = pinned("SELECT users.id, silver.users.name FROM silver.users", "name")
    assert sql.startswith("SELECT users.id, users.name FROM (SELECT ")
    assert sql.endswith(") AS users")


def test_without_masks_the_query_stays_as_it_is(pinned) -> None:
    assert "VERSION AS OF 0 AS u" in pinned("SELECT u.name FROM silver.users AS u")


@pytest.mark.parametrize("when", ["VERSION AS OF 0", "TIMESTAMP AS OF '2024-01-01'"])
def test_older_versions_are_not_shown(pinned, when: str) -> None:
    query = f"SELECT u.id FROM silver.users {when} AS u"
    assert when in pinned(query)
    with pytest.raises(MaskedVersionError) as caught:
        pinned(query, "name")
    assert caught.value.table == "silver.users"
