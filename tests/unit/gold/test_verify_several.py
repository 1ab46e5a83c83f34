"""Several views are verified at the same time, and one that fails stops no other."""

from __future__ import annotations

from threading import Barrier
from types import SimpleNamespace
from typing import Any, cast

import pytest

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.base.errors import NotPublishedError
from spark_jobs.gold.verify import several
from spark_jobs.gold.verify.published import Finding, Verification
from spark_jobs.planning.vector import VersionVector

CONTEXT = cast("GoldContext", SimpleNamespace(spark=None))


def equal(view: str) -> Verification:
    return Verification(
        view=view, finding=Finding.EQUAL, detail="", vector=VersionVector({}), version=1, rows=1
    )


def test_each_view_has_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    # Passed only by two threads at once.
    together = Barrier(2, timeout=10)

    def verify(_context: Any, view: str, *, buckets: Any) -> Verification:
        assert buckets is None
        together.wait()
        if view == "b":
            raise NotPublishedError(view)
        return equal(view)

    monkeypatch.setattr(several, "verify", verify)
    begun: list[str] = []
    found = dict(several.verify_each(CONTEXT, "abcd", threads=2, begins=begun.append))
    assert sorted(begun) == sorted(found) == [*"abcd"]
    assert isinstance(found.pop("b"), NotPublishedError)
    assert found == {view: equal(view) for view in "acd"}


def test_any_other_error_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def verify(_context: Any, view: str, *, buckets: Any) -> Verification:
        raise ZeroDivisionError(view, buckets)

    monkeypatch.setattr(several, "verify", verify)
    with pytest.raises(ZeroDivisionError):
        list(several.verify_each(CONTEXT, "ab"))
