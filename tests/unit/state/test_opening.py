"""Opening, migrating and refusing control databases."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from threading import Timer

import pytest
from sqlalchemy import Engine, inspect, text

from spark_jobs.state import engine as engine_module
from spark_jobs.state.engine import make_engine
from spark_jobs.state.errors import ControlSchemaNewerError, ControlUnreachableError
from spark_jobs.state.store import ControlStore
from spark_jobs.state.tables import METADATA, SCHEMA_VERSION


def test_every_table_is_there_after_opening_and_opening_again_changes_nothing(
    control_url: str,
) -> None:
    for _ in range(2):
        with ControlStore.open(control_url) as store:
            store.migrate()
    engine = make_engine(control_url)
    with engine.begin() as connection:
        assert set(METADATA.tables) <= set(inspect(connection).get_table_names())
        rows = connection.execute(text("SELECT id, version FROM tidemark_schema")).all()
    engine.dispose()
    assert rows == [(1, SCHEMA_VERSION)]


def test_a_new_database_that_another_process_writes_is_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "control.db"
    with closing(sqlite3.connect(file, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        ended = Timer(0.2, other.execute, ["COMMIT"])
        ended.start()
        ControlStore.open(f"sqlite:///{file}").close()
        ended.join()


def test_a_newer_database_is_refused(control_url: str) -> None:
    ControlStore.open(control_url).close()
    engine = make_engine(control_url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE tidemark_schema SET version = 99")).close()
    engine.dispose()
    with pytest.raises(ControlSchemaNewerError) as refusal:
        ControlStore.open(control_url)
    assert (refusal.value.found, refusal.value.known) == (99, SCHEMA_VERSION)


def test_the_directory_is_made_for_its_owner_only(tmp_path: Path) -> None:
    ControlStore.open(f"sqlite:///{tmp_path}/state/control.db").close()
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700


def test_a_directory_that_exists_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir(mode=0o755)
    before = (tmp_path / "state").stat().st_mode
    ControlStore.open(f"sqlite:///{tmp_path}/state/control.db").close()
    assert (tmp_path / "state").stat().st_mode == before


def test_sqlite_is_set_up_for_many_processes(tmp_path: Path) -> None:
    engine = make_engine(f"sqlite:///{tmp_path}/control.db")
    with engine.begin() as connection:
        found = {
            name: connection.execute(text(f"PRAGMA {name}")).scalar()
            for name in ("journal_mode", "busy_timeout", "foreign_keys")
        }
    engine.dispose()
    assert found == {"journal_mode": "wal", "busy_timeout": 30_000, "foreign_keys": 1}


@pytest.mark.parametrize(
    "url",
    [
        "nonsense",
        "sqlite://",
        "mysql://root@localhost/x",
        "sqlite:////proc/nowhere/control.db",
        "postgresql+psycopg://nobody:hidden@127.0.0.1:1/none",
        "postgresql://nobody:hidden@127.0.0.1:1/none",
    ],
)
def test_an_unusable_url_is_reported_without_its_password(url: str) -> None:
    with pytest.raises(ControlUnreachableError) as refusal:
        ControlStore.open(url)
    assert refusal.value.problem
    assert "hidden" not in refusal.value.render()


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "control.db").write_text("hello" * 1000)
    with pytest.raises(ControlUnreachableError):
        ControlStore.open(f"sqlite:///{tmp_path}/control.db")


def test_a_store_keeps_its_connection(tmp_path: Path) -> None:
    engine = make_engine(f"sqlite:///{tmp_path}/control.db")
    numbers = [_marked(engine) for _ in range(3)]
    engine.dispose()
    assert numbers == [1, 2, 3]


def test_a_database_that_was_put_back_is_reopened(tmp_path: Path) -> None:
    path = tmp_path / "control.db"
    engine = make_engine(f"sqlite:///{path}")
    assert _marked(engine) == 1
    path.rename(tmp_path / "before.db")
    assert _marked(engine) == 1
    engine.dispose()


def test_a_forked_child_opens_a_connection_of_its_own(tmp_path: Path) -> None:
    engine = make_engine(f"sqlite:///{tmp_path}/control.db")
    assert _marked(engine) == 1
    child = os.fork()
    if child == 0:
        os._exit(_marked(engine))
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 1
    assert _marked(engine) == 2
    engine.dispose()


def _marked(engine: Engine) -> int:
    """How often the connection that is given was given before, and this time."""
    with engine.begin() as connection:
        connection.execute(text("CREATE TEMP TABLE IF NOT EXISTS marks (one INTEGER)")).close()
        connection.execute(text("INSERT INTO marks VALUES (1)")).close()
        return int(connection.execute(text("SELECT COUNT(*) FROM marks")).scalar_one())


def test_no_connection_stays_open(tmp_path: Path) -> None:
    path = tmp_path / "control.db"
    ControlStore.open(f"sqlite:///{path}").close()
    # An exclusive lock is given only where nobody else is connected.
    with sqlite3.connect(path, timeout=0) as alone:
        alone.execute("PRAGMA locking_mode = EXCLUSIVE")
        alone.execute("BEGIN EXCLUSIVE")
    alone.close()


def test_a_database_that_is_locked_for_long_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "control.db"
    monkeypatch.setattr(engine_module, "BUSY_SECONDS", 0)
    with ControlStore.open(f"sqlite:///{file}") as store, closing(sqlite3.connect(file)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(ControlUnreachableError) as caught:
            store.bump_epoch("gold.daily", reason="a test")
        assert caught.value.said == "database is locked."
        other.rollback()
        assert store.bump_epoch("gold.daily", reason="a test") == 2


@pytest.mark.parametrize(
    ("url", "named"),
    [("sqlite:////srv/state/control.db", "state_dir"), ("postgresql://db/control", "control_db")],
)
def test_the_hint_names_the_setting_that_places_the_database(url: str, named: str) -> None:
    """A file has no server that could run, and is where the state directory is."""
    assert named in (ControlUnreachableError(url, "Permission denied").hint or "")
