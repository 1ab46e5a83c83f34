"""Two stacks that were given one lake: each with its own state and control database."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.refresh.lease import sole_writer
from spark_jobs.graph.manifest import Manifest
from spark_jobs.names import TableName
from spark_jobs.sections import GoldSettings
from spark_jobs.settings import Settings, load_settings
from spark_jobs.silver.store import lock as guard
from spark_jobs.silver.store.lock import table_guard
from spark_jobs.state.errors import TableLockedError
from spark_jobs.state.store import ControlStore
from spark_jobs.streaming.application import StreamsAlreadyRunningError, sole_application

ORDERS = TableName.parse("silver.orders")


@pytest.fixture(params=["{}/lake", "file://{}/lake"])
def stack(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[str], Settings]:
    """Makes the settings of a stack whose lake may be written as a path or as a URL."""
    lakes = iter([f"{tmp_path}/lake", request.param.format(tmp_path)])

    def make(name: str) -> Settings:
        return load_settings(
            tmp_path,
            state_dir=tmp_path / name,
            lake_root=next(lakes),
            gold=GoldSettings(lease_seconds=0.1),
        )

    return make


def test_the_second_one_s_streams_are_refused(
    stack: Callable[[str], Settings], tmp_path: Path
) -> None:
    with sole_application(stack("one")):
        with (
            pytest.raises(StreamsAlreadyRunningError) as refused,
            sole_application(stack("two")),
        ):
            pass
        assert "lake_root" in (refused.value.hint or "")
        # A stack with a lake of its own runs beside them.
        with sole_application(load_settings(tmp_path, state_dir=tmp_path / "three")):
            pass


def test_they_take_turns_at_a_table(
    stack: Callable[[str], Settings],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", logger="spark_jobs.gold.refresh.lease")
    monkeypatch.setattr(guard, "WAIT_SECONDS", 0.0)
    one, two = stack("one"), stack("two")
    with ControlStore.open(one.control_url) as first, ControlStore.open(two.control_url) as second:
        with (
            table_guard(one, first, ORDERS),
            pytest.raises(TableLockedError),
            table_guard(two, second, ORDERS),
        ):
            pass
        contexts = [
            GoldContext(two, Manifest(project="p"), second),
            GoldContext(one, Manifest(project="p"), first),
        ]
        with sole_writer(contexts[0], "daily", attempt_id="a"):
            with (
                pytest.raises(TableLockedError),
                sole_writer(contexts[1], "daily", attempt_id="b"),
            ):
                pass
            # Whoever reads the log of a task that waits learns for whom, once.
            waits = f"waiting table=gold.daily held_by=process {os.getpid()}"
            assert caplog.messages.count(waits) == 1
            with sole_writer(contexts[1], "weekly", attempt_id="c"):
                pass
        with sole_writer(contexts[1], "daily", attempt_id="b"):
            pass
