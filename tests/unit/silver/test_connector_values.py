"""What the connector makes of PostgreSQL's text, where no running server of the tests has it."""

from __future__ import annotations

import json

import pytest

from spark_jobs.access.source_tables import PostgresType
from spark_jobs.silver.check.connector_values import json_writer


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("1 mon -1 days", 2_629_800_000_000 - 86_400_000_000),
        ("00:00:00", 0),
        # PostgreSQL 17 has endless intervals, which are no number of microseconds.
        ("infinity", "infinity"),
        ("-infinity", "-infinity"),
    ],
)
def test_an_interval(text: str, written: int | str) -> None:
    write = json_writer(PostgresType("interval", 1186, "b", -1, None, "interval"))
    assert write is not None
    assert json.loads(write(text)) == written
