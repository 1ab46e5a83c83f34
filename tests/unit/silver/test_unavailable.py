"""What of a SELECT can be taken from the row before, and which values it cannot do without."""

from __future__ import annotations

from typing import Any

import pytest

from spark_jobs.definitions.vocabulary import SourceFormat
from spark_jobs.graph.manifest import ApplyMode, Column, SilverEntry, SourceEntry
from spark_jobs.graph.projection import split_projection
from spark_jobs.silver.parse.unavailable import Carried

TYPES = {"id": "bigint", "Body": "string", "note": "string", "tags": "array<string>", "n": "int"}
SOURCE = SourceEntry(
    name="x",
    format=SourceFormat.DEBEZIUM,
    keys=("id",),
    file="sources/x.yml",
    columns=tuple(Column(name=name, type=kind) for name, kind in TYPES.items()),
)


@pytest.mark.parametrize(
    ("select", "header", "outputs", "needed"),
    [
        ("s.id, s.body, s.n", {}, (("body", "Body"),), ()),
        ("s.id, upper(s.BODY) AS b, s.tags[0] AS t", {}, (("b", "Body"), ("t", "tags")), ()),
        ("s.id, s.body || s.note AS both, s.note", {}, (("note", "note"),), ("Body", "note")),
        ("s.id, s.body || s.n AS both", {}, (), ("Body",)),
        ("s.note AS id, s.note", {}, (("note", "note"),), ("note",)),
        ("s.id, s.body FROM source AS s WHERE s.tags[0] = 'x'", {}, (("body", "Body"),), ("tags",)),
        (
            "s.id, s.n",
            {"sequence_by": "note", "apply_as_deletes": "body = 'x'"},
            (),
            ("Body", "note"),
        ),
    ],
)
def test_what_a_select_makes_of_large_values(
    select: str,
    header: dict[str, Any],
    outputs: tuple[tuple[str, str], ...],
    needed: tuple[str, ...],
):
    relation = "" if " FROM " in select else " FROM source AS s"
    projection = split_projection(f"SELECT {select}{relation}")
    entry = SilverEntry(
        name="x",
        source="x",
        sql="",
        projection="",
        columns=(),
        keys=("id",),
        apply=ApplyMode.UPSERT,
        file="sql/silver/x.sql",
        fingerprint="1",
        **header,
    )
    assert Carried.of(SOURCE, entry, projection) == Carried(outputs, needed)
