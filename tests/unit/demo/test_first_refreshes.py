"""The demo's own refreshes: two at a time, each after the views that it reads."""

from __future__ import annotations

import io
from threading import Lock
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from spark_jobs.demo.first_refreshes import refresh_views
from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.base.errors import NotPublishedError
from spark_jobs.gold.refresh import steps
from spark_jobs.state.errors import LeaseTakenError
from spark_jobs.state.types import utc_now
from spark_jobs.terminal.steps import Steps

# Upstream views; "other" is not refreshed here.
UPSTREAM = {"a": (), "b": ("a",), "c": ("a", "other"), "d": ("b", "c"), "other": ()}
GOLD = cast(
    "GoldContext",
    SimpleNamespace(
        settings=None,
        store=None,
        spark=None,
        manifest=SimpleNamespace(
            gold={view: SimpleNamespace(upstream=names) for view, names in UPSTREAM.items()}
        ),
    ),
)


def refreshed(monkeypatch: pytest.MonkeyPatch, **errors: Exception) -> list[tuple[str, str]]:
    """What began and ended, in order."""
    found: list[tuple[str, str]] = []
    lock = Lock()

    class Refresher:
        def __init__(self, *_: Any, **__: Any) -> None:
            self.context = GOLD

        def run(self, view: str, *, tick: str) -> None:
            assert tick.startswith("demo-")
            with lock:
                found.append(("begins", view))
            if view in errors:
                raise errors[view]
            with lock:
                found.append(("ends", view))

    monkeypatch.setattr(steps, "Refresher", Refresher)
    shown = Steps(Console(file=io.StringIO()))
    refresh_views(GOLD, [*"abcd"], shown, title="refresh 4 views")
    return found


def test_a_view_is_refreshed_after_those_that_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    found = refreshed(monkeypatch)
    assert sorted(view for what, view in found if what == "ends") == [*"abcd"]
    for view in "abcd":
        begins = found.index(("begins", view))
        for name in {*UPSTREAM[view]} & {*"abcd"}:
            assert found.index(("ends", name)) < begins


def test_a_view_that_a_scheduled_run_refreshes_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    found = refreshed(
        monkeypatch, b=LeaseTakenError("gold.b", holder="another", expires_at=utc_now())
    )
    assert ("ends", "d") in found


def test_an_error_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotPublishedError):
        refreshed(monkeypatch, c=NotPublishedError("c"))
