"""What the catalog of a source database says of a table."""

from __future__ import annotations

import pytest

from spark_jobs.access.source_tables import PostgresType, SourceTable


def column(name: str, array: int | None) -> PostgresType:
    return PostgresType(name, 1, "b", -1, array, f"{name}{'[]' if array else ''}")


@pytest.mark.parametrize("full", [False, True])
def test_arrays_without_a_placeholder_are_named_unless_updates_tell_all(full: bool) -> None:
    arrays = ("text", "int8", "float8", "numeric", "timestamptz", "interval")
    columns = {f"{name}s": column(name, 7) for name in arrays}
    table = SourceTable({"id": column("float8", None), **columns}, ("id",), full=full)
    assert table.arrays_left_out == ([] if full else ["float8s", "numerics", "timestamptzs"])
