"""What the shapes of records say about a declaration, and what a source's policy makes of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_jobs.definitions.vocabulary import OnDrift, SourceFormat
from spark_jobs.graph.manifest import ApplyMode, Column, SilverEntry, SourceEntry
from spark_jobs.silver.check.drift import (
    LONGEST,
    MOST_OF_A_KIND,
    Place,
    Seen,
    arrived,
    blocking_drifts,
    differences,
    open_drifts,
    source_columns_read,
    to_review,
)
from spark_jobs.silver.parse.shapes import read_shape
from spark_jobs.state.drift import Drift, DriftKind

SOURCE = SourceEntry(
    name="orders",
    format=SourceFormat.DEBEZIUM,
    topic="shop.orders",
    keys=("id",),
    columns=(
        Column(name="id", type="bigint"),
        Column(name="note", type="string"),
        Column(name="amount", type="double"),
        Column(name="mood", type="string", values=("calm",)),
    ),
    file="sources/orders.yml",
)
ENTRY = SilverEntry(
    name="orders",
    source="orders",
    sql="",
    projection="SELECT o.id, UPPER(o.note) AS shout FROM source AS o WHERE o.amount > 0",
    columns=(Column(name="id", type="bigint"), Column(name="shout", type="string")),
    keys=("id",),
    apply=ApplyMode.UPSERT,
    file="sql/silver/orders.sql",
    fingerprint="1",
)
WHOLE = "id: BIGINT, note: STRING, amount: DOUBLE, mood: STRING"


def seen(fields: str, first: int, last: int | None = None, *, more: str = "") -> Seen:
    def place(at: int) -> Place:
        return Place(f"{at:05}", 0, at)

    return Seen(
        read_shape(f"OBJECT<{fields}>{more}"), place(first), place(first if last is None else last)
    )


def found(*batch: Seen, source: SourceEntry = SOURCE) -> list[tuple[str, str, int]]:
    shapes = list(batch)
    known = arrived(shapes, source, {})
    return [(one.kind.value, one.column, one.offset) for one in differences(shapes, source, known)]


def test_records_as_declared_show_nothing() -> None:
    null = WHOLE.replace("note: STRING", "note: VOID")
    assert found(seen(WHOLE, 1, 9), seen(null, 2)) == []


def test_a_rename_is_a_column_that_vanished_and_one_that_nobody_declared() -> None:
    renamed = WHOLE.replace("note:", "remark:")
    assert found(seen(WHOLE, 1, 4), seen(renamed, 5, 9)) == [
        ("unknown", "remark", 5),
        ("vanished", "note", 5),
    ]


def test_rows_from_before_a_column_was_added_are_no_loss() -> None:
    assert found(seen(WHOLE.replace(", mood: STRING", ""), 1, 4), seen(WHOLE, 5, 9)) == []


def test_a_column_that_vanished_twice_is_reported_at_the_last_record() -> None:
    without = WHOLE.replace(", mood: STRING", "")
    assert found(seen(without, 1, 9), seen(WHOLE, 5)) == [("vanished", "mood", 9)]


def test_a_column_that_never_came_is_missing_and_an_event_may_leave_any_out() -> None:
    without = seen(WHOLE.replace("note: STRING, ", ""), 3)
    assert found(without) == [("missing", "note", 3)]
    events = SOURCE.model_copy(update={"format": SourceFormat.JSON})
    assert found(without, source=events) == []


@pytest.mark.parametrize(
    ("before", "after", "name"),
    [
        ("note: STRING", "note: BIGINT", "note"),
        ("note: STRING", "note: OBJECT<a: BIGINT, b: ARRAY<STRING>>", "note"),
        ("amount: DOUBLE", "amount: BOOLEAN", "amount"),
    ],
)
def test_another_kind_of_value_is_a_type_that_changed(before: str, after: str, name: str) -> None:
    other = WHOLE.replace(before, after)
    assert found(seen(WHOLE, 1), seen(other, 2)) == [("retyped", name, 2)]
    # A value that the database did not send has the kind of what stands for it.
    assert found(seen(WHOLE, 1), seen(other, 2, more="\x1funavailable")) == []


def test_a_number_may_be_a_text_where_it_is_no_number_or_too_long() -> None:
    assert found(seen(WHOLE, 1), seen(WHOLE.replace("DOUBLE", "STRING"), 2)) == []


def test_values_that_are_not_listed_and_values_that_do_not_fit() -> None:
    assert found(
        seen(WHOLE, 1, more="\x1fmood\x1eglad"),
        seen(WHOLE, 2, more="\x1fmood\x1ecross"),
        replace(seen(WHOLE, 3), misfit="amount"),
    ) == [("value", "mood", 1), ("value", "mood", 2), ("retyped", "amount", 3)]


def test_names_of_records_are_kept_as_a_database_can_keep_them_and_not_without_end() -> None:
    odd = [f"`{number:03}{'x' * 300}`: BIGINT" for number in range(MOST_OF_A_KIND + 9)]
    odd[0] = "`nul\0 and ``, <`: BIGINT"
    kept = differences([seen(f"{WHOLE}, {', '.join(odd)}", 1)], SOURCE, {})
    names = [one.column for one in kept if one.kind is DriftKind.UNKNOWN]
    assert "nul\\0 and `, <" in names
    assert len(names) == MOST_OF_A_KIND
    assert max(map(len, names)) == LONGEST


def drift(kind: DriftKind, column: str, **more: str) -> Drift:
    declared = {one.name: one.type for one in SOURCE.columns}.get(column, "")
    return Drift(
        source="orders",
        kind=kind,
        column=column,
        declared=declared,
        topic="t",
        partition=0,
        offset=1,
        detail=more.get("detail", ""),
        accepted_by=more.get("accepted_by"),
    )


ALL = [
    drift(DriftKind.UNKNOWN, "remark"),
    drift(DriftKind.VANISHED, "note"),
    drift(DriftKind.VANISHED, "mood"),
    drift(DriftKind.MISSING, "amount"),
    drift(DriftKind.RETYPED, "amount"),
    drift(DriftKind.VALUE, "mood", detail="glad"),
]


@pytest.mark.parametrize(
    ("policy", "holds", "says"),
    [
        (None, ["note"], 6),
        (OnDrift.WARN, [], 6),
        (OnDrift.HOLD, ["remark", "note", "mood", "amount", "mood"], 6),
        (OnDrift.EVOLVE, [], 0),
    ],
)
def test_the_policy_decides_which_drift_holds_and_which_is_reported(
    policy: OnDrift | None, holds: list[str], says: int
) -> None:
    source = SOURCE.model_copy(update={"on_drift": policy})
    assert [one.column for one in blocking_drifts(ALL, source, ENTRY)] == holds
    assert len(to_review(ALL, source)) == says


def test_a_table_reads_what_its_columns_and_its_conditions_name() -> None:
    assert source_columns_read(SOURCE, ENTRY) == {"id", "note", "amount"}


def test_a_difference_ends_when_it_is_accepted_or_declared() -> None:
    columns = [Column(name="remark", type="string"), Column(name="amount", type="string")]
    columns.append(Column(name="mood", type="string", values=("calm", "glad")))
    source = SOURCE.model_copy(update={"columns": tuple(columns)})
    left = [(one.kind.value, one.column) for one in open_drifts(ALL, source)]
    assert left == [("vanished", "mood")]
    assert open_drifts([drift(DriftKind.VANISHED, "note", accepted_by="me")], SOURCE) == []
