"""A change whose rows to delete are not there is written again, from the result of the SQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException

from spark_jobs.gold.base.errors import QueryFailedError
from spark_jobs.gold.compute.run import StagedChange
from spark_jobs.gold.engine.multisets import LACKING
from spark_jobs.gold.refresh import staging

STATES = {"state.0": "the groups"}


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What was written; the first write of a change fails as Spark says."""
    found: list[tuple[Any, ...]] = []

    @contextmanager
    def once(*_: object, **__: object) -> Iterator[StagedChange]:
        yield StagedChange("the change", STATES, True, "spark")  # type: ignore[arg-type]

    @contextmanager
    def compared(*_: object) -> Iterator[str]:
        yield "the difference"

    def write(change: StagedChange, base: int, location: str) -> None:
        if change.rows == "the change":
            raise PySparkException(f"[USER_RAISED_EXCEPTION] gold.sums: {location}")
        found.append((change.rows, change.states, change.counted, base))

    monkeypatch.setattr(staging.choice, "computed", once)
    monkeypatch.setattr(staging, "compared_rows", compared)
    monkeypatch.setattr(staging, "_write_staged", write)
    return found


def write(cause: str) -> None:
    """Stage a change of version 7; what Spark says is passed on as the location."""
    work, base = SimpleNamespace(view="sums", changed=1), SimpleNamespace(version=7)
    change = SimpleNamespace(relations=SimpleNamespace(base=base))
    staging._write_change(None, work, change, cause)  # type: ignore[arg-type]


def test_the_difference_is_written_with_the_state_of_the_change(written) -> None:
    write(LACKING)
    assert written == [("the difference", STATES, True, 7)]


def test_another_failure_is_one(written) -> None:
    with pytest.raises(QueryFailedError, match="division by zero"):
        write("division by zero")
    assert written == []
