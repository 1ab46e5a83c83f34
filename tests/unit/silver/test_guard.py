"""Of the writers of one silver table, one at a time."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from spark_jobs.names import TableName
from spark_jobs.settings import Settings, load_settings
from spark_jobs.silver.store import lock as guard
from spark_jobs.silver.store.lock import table_guard
from spark_jobs.state.errors import LeaseTakenError, TableLockedError
from spark_jobs.state.store import ControlStore

ORDERS, USERS = TableName.parse("silver.orders"), TableName.parse("silver.users")


def project(tmp_path: Path, lake_root: str = "") -> Settings:
    return load_settings(tmp_path, state_dir=tmp_path / "state", lake_root=lake_root)


@pytest.mark.parametrize(
    ("lake_root", "refused"), [("", TableLockedError), ("s3a://bucket/lake", LeaseTakenError)]
)
def test_a_held_table_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lake_root: str, refused: type[Exception]
) -> None:
    settings = project(tmp_path, lake_root)
    turns = []
    with ControlStore.open(settings.control_url) as store:
        # Each writer is a process of its own.
        processes = itertools.count(1)
        pids = SimpleNamespace(getpid=lambda: next(processes))
        monkeypatch.setattr(guard, "os", pids)

        def second() -> None:
            with table_guard(settings, store, ORDERS):
                turns.append("second")

        with table_guard(settings, store, ORDERS):
            waiting = threading.Thread(target=second)
            waiting.start()
            with table_guard(settings, store, USERS):
                turns.append("first")
            monkeypatch.setattr(guard, "WAIT_SECONDS", 0.0)
            with pytest.raises(refused), table_guard(settings, store, ORDERS):
                pass
        waiting.join(10)
        assert turns == ["first", "second"]
        with table_guard(settings, store, ORDERS):
            turns.append("third")
    assert turns[-1] == "third"
