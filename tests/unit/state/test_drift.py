"""Differences are recorded once, and a person's word about them stays."""

from __future__ import annotations

from spark_jobs.state.drift import Arrival, Drift, DriftKind
from spark_jobs.state.store import ControlStore


def drift(kind: DriftKind, column: str, *, offset: int = 1, detail: str = "") -> Drift:
    return Drift(
        source="orders",
        kind=kind,
        column=column,
        detail=detail,
        topic="t",
        partition=0,
        offset=offset,
    )


def test_a_difference_keeps_its_first_record_and_its_acceptance(store: ControlStore) -> None:
    store.record_drifts([drift(DriftKind.RETYPED, "a", detail="string to number")])
    assert store.accept_drifts("orders", columns=["a", "b"], by="me", reason="as it should be") == 1
    store.record_drifts([drift(DriftKind.RETYPED, "a", offset=9, detail="another")])
    (kept,) = store.drifts("orders")
    assert (kept.offset, kept.detail, kept.accepted_by) == (1, "string to number", "me")
    assert kept.accepted_at is not None
    assert store.accept_drifts("orders", columns=["a"], by="you", reason="once more") == 0
    assert store.drifts("others") == []


def test_each_value_is_a_difference_of_its_own(store: ControlStore) -> None:
    store.record_drifts([drift(DriftKind.VALUE, "a", detail=one) for one in ("x", "y", "x")])
    assert [one.detail for one in store.drifts()] == ["x", "y"]


def test_an_arrived_column_is_no_longer_missing(store: ControlStore) -> None:
    store.record_drifts([drift(DriftKind.MISSING, "a"), drift(DriftKind.MISSING, "b")])
    store.record_arrivals([Arrival("orders", "a", "", "5")])
    store.record_arrivals([Arrival("orders", "a", "number", "4")])
    assert [one.column for one in store.drifts()] == ["b"]
    assert store.arrivals("orders") == [Arrival("orders", "a", "number", "4")]
