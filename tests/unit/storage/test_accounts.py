"""A JVM as another account: what becomes of one that does not come up."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_jobs.storage import accounts
from spark_jobs.storage.accounts import Account, jvm_of, make_folders
from spark_jobs.storage.errors import JvmNotStartedError

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A distribution of Spark that every account can go to; Pytest's folders are closed."""
    with tempfile.TemporaryDirectory(prefix="tidemark-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o711)
        (folder / "bin").mkdir(mode=0o755)
        monkeypatch.setattr(accounts, "SHIPPED", folder / "jars")
        yield folder


def started(place: Path, script: str) -> None:
    program = place / "bin/spark-submit"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    account, files = Account.named("nobody"), place / "files"
    make_folders(files, account)
    with jvm_of(account, {"spark.app.name": "x"}, files=files):
        pytest.fail("it never said where it listens")


def test_a_process_that_exits_is_reported_with_its_status(place: Path) -> None:
    with pytest.raises(JvmNotStartedError) as caught:
        started(place, "exit 3")
    assert (caught.value.account, caught.value.status) == ("nobody", 3)


def test_a_jvm_that_does_not_report_is_killed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "_START_SECONDS", 0.5)
    monkeypatch.setattr(accounts, "_END_SECONDS", 0.5)
    with pytest.raises(JvmNotStartedError) as caught:
        started(place, 'echo $$ > "$HOME/pid"; exec sleep 600')
    assert caught.value.status is None
    pid = (place / "files/own/pid").read_text().strip()
    assert not Path(f"/proc/{pid}").exists()
