"""Two small tables are compared as multisets of rows."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.gold.compute.difference_here import change_between, differing_rows_here
from spark_jobs.storage import policy

KINDS = {
    "weight": "bigint",
    "copies": "string",
    "c0": "date",
    "at": "timestamp",
    "of": "decimal(9,2)",
    "b": "boolean",
    "raw": "binary",
}
SCHEMA = pa.schema(
    [
        ("weight", pa.int64()),
        ("copies", pa.string()),
        ("c0", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("of", pa.decimal128(9, 2)),
        ("b", pa.bool_()),
        ("raw", pa.binary()),
    ]
)
ROWS = st.lists(
    st.tuples(
        st.sampled_from([None, 0, 1]),
        st.sampled_from([None, "", "é"]),
        st.sampled_from([None, date(2026, 1, 1)]),
        st.sampled_from([None, datetime(2026, 1, 1, tzinfo=UTC)]),
        st.sampled_from([None, Decimal("1.00")]),
        st.sampled_from([None, True]),
        st.sampled_from([None, b"\0"]),
    ),
    max_size=12,
)


def table(rows: list[tuple[object, ...]], *, nullable: bool = True) -> pa.Table:
    schema = pa.schema([one.with_nullable(nullable) for one in SCHEMA])
    return pa.Table.from_pylist(
        [dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=schema
    )


def counted(rows: pa.Table) -> Counter[tuple[object, ...]]:
    assert rows.column_names == SCHEMA.names
    return Counter(tuple(row.values()) for row in rows.to_pylist())


@given(after=ROWS, before=ROWS)
def test_all_copies_of_rows_that_differ_are_replaced(
    after: list[tuple[object, ...]], before: list[tuple[object, ...]]
) -> None:
    differing, inserted = differing_rows_here(table(after), table(before))
    new, old = Counter(after), Counter(before)
    wanted = {row for row in new | old if new[row] != old[row]}
    assert counted(differing) == Counter(wanted)
    assert counted(inserted) == Counter({row: new[row] for row in wanted if new[row]})


def test_columns_may_be_declared_not_null_on_one_side() -> None:
    row = (1, "a", date(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC), Decimal(1), True, b"")
    differing, inserted = differing_rows_here(table([row]), table([row, row], nullable=False))
    assert (differing.num_rows, inserted.num_rows) == (1, 1)


def test_many_rows_that_differ_are_not_merged() -> None:
    rows = pa.table({"a": range(policy.most_merged(0) + 1)})
    change = change_between(rows, rows.slice(0, 1), {"a": "bigint"}, lambda: None)  # type: ignore[arg-type, return-value]
    assert change is not None
    assert (change.deletes, change.inserts) == (rows.num_rows - 1, rows.num_rows - 1)
    assert change_between(rows.slice(0, 0), rows, {"a": "bigint"}, lambda: None) is None  # type: ignore[arg-type, return-value]
