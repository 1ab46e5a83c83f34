"""Sinks take their keys from their table, and are no part of its definition."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from spark_jobs.definitions.vocabulary import KafkaFormat, RedisFormat, SinkSystem
from spark_jobs.errors import ProblemsError
from spark_jobs.graph.compile import compile_project
from spark_jobs.graph.manifest import Manifest, SinkEntry
from tests.golden.declaration_cases import RIGHT, write_project

KAFKA = "sinks:\n  - kafka: {topic: a}\n"


def compiled(directory: Path, file: str, sinks: str) -> Manifest:
    text = RIGHT[file].replace("description:", f"{sinks}description:")
    return compile_project(write_project(directory, {file: text}))


@pytest.mark.parametrize(
    ("file", "table", "keys"),
    [
        ("sql/gold/spend.sql", "gold.spend", ("user_id",)),
        ("sql/silver/orders.sql", "silver.orders", ("order_id",)),
        ("sql/silver/clicks.sql", "silver.clicks", ("event_id",)),
    ],
)
def test_keys_are_those_of_the_table(
    tmp_path: Path, file: str, table: str, keys: tuple[str, ...]
) -> None:
    [sink] = compiled(tmp_path, file, KAFKA).sinks.values()
    assert (sink.name, sink.table, sink.keys) == (
        f"{table[table.index('.') + 1 :]}_kafka",
        table,
        keys,
    )
    assert set(keys) <= set(sink.columns)


def test_more_keys_than_needed_are_taken_as_the_table_spells_them(tmp_path: Path) -> None:
    entry = "sinks:\n  - kafka: {topic: a, keys: [SPEND, User_id]}\n"
    [sink] = compiled(tmp_path, "sql/gold/spend.sql", entry).sinks.values()
    assert sink.keys == ("spend", "user_id")


def test_omitted_sink_options_have_defaults(tmp_path: Path) -> None:
    entries = """sinks:
  - kafka: {topic: a}
  - postgres: {table: spend}
  - redis: {prefix: "spend:", name: by_user}
"""
    manifest = compiled(tmp_path, "sql/gold/spend.sql", entries)
    assert [(one.system, one.target, one.format) for one in manifest.sinks.values()] == [
        (SinkSystem.REDIS, "spend:", RedisFormat.HASH),
        (SinkSystem.KAFKA, "a", KafkaFormat.UPSERT),
        (SinkSystem.POSTGRES, "public.spend", None),
    ]
    assert list(manifest.sinks) == ["by_user", "spend_kafka", "spend_postgres"]
    assert all(
        SinkEntry.model_validate_json(one.model_dump_json()) == one
        for one in manifest.sinks.values()
    )


@pytest.mark.parametrize(
    ("target", "wrong"),
    [
        ("redis: {prefix: t}", True),
        ("redis: {prefix: tidemark}", True),
        ('redis: {prefix: "t:"}', False),
        ("redis: {prefix: tides}", False),
        ("kafka: {topic: connect-offsets}", True),
        ("kafka: {topic: _spend}", True),
        ("kafka: {topic: connect-spend}", False),
    ],
)
def test_no_sink_shares_keys_or_topics_with_watermarks_and_connect(
    tmp_path: Path, target: str, wrong: bool
) -> None:
    entries = f"sinks:\n  - {target}\n"
    with pytest.raises(ProblemsError) if wrong else nullcontext() as caught:
        compiled(tmp_path, "sql/gold/spend.sql", entries)
    if caught is not None:
        assert [one.condition for one in caught.value.problems] == ["SINK_TARGET"]


def test_a_sink_is_no_part_of_the_definition(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    file = "sql/gold/spend.sql"
    one, other = compiled(tmp_path / "a", file, KAFKA), compiled(tmp_path / "b", file, "")
    assert one.gold["spend"].fingerprint == other.gold["spend"].fingerprint
