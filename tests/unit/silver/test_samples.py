"""Which tables are compared by a sample, and under which name the server is asked for them."""

from __future__ import annotations

from typing import Any, cast

import psycopg
import pytest

from spark_jobs.access.source_tables import PostgresType
from spark_jobs.definitions.vocabulary import SourceFormat
from spark_jobs.graph.manifest import Column, SourceEntry
from spark_jobs.graph.projection import split_projection
from spark_jobs.silver.check.samples import sample_above

PROJECTION = split_projection("SELECT s.id, s.n FROM source AS s")


class Server:
    """A connection to a server whose tables have many rows; it keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def execute(self, query: str, parameters: list[Any]) -> Server:
        assert "to_regclass" in query
        self.asked += parameters
        return self

    def fetchone(self) -> tuple[int]:
        return (5_000_000,)


@pytest.mark.parametrize(
    ("kind", "declared", "sampled"),
    [
        ("int8", "bigint", True),
        ("int4", "string", True),
        ("uuid", "string", True),
        ("varchar", "varchar(9)", True),
        # Their text in Spark is another: 5.00, 5.0, 7 of 007.
        ("int4", "decimal(12,2)", False),
        ("int4", "double", False),
        ("text", "bigint", False),
        ("numeric", "decimal(12,2)", False),
    ],
)
def test_a_key_is_sampled_by_a_text_that_both_sides_have(
    kind: str, declared: str, sampled: bool
) -> None:
    server = Server()
    source = SourceEntry(
        name="x",
        format=SourceFormat.DEBEZIUM,
        keys=("id",),
        table="public.Order-Items",
        file="sources/x.yml",
        columns=(Column(name="id", type=declared), Column(name="n", type="int")),
    )
    choose = sample_above(1_000_000, source, PROJECTION)
    kinds = {"id": PostgresType(kind, 20, "b", -1, None, kind)}
    found = choose(cast("psycopg.Connection[Any]", server), kinds)
    assert (found is not None) is sampled
    assert server.asked == ['"public"."Order-Items"']
