"""Which Spark a session is of, and what is said where a server is named and does not answer."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.logger import PySparkLogger

from spark_jobs.sections import SparkSettings
from spark_jobs.settings import Settings, load_settings
from spark_jobs.storage import session
from spark_jobs.storage.conf import connect_url_file
from spark_jobs.storage.errors import SparkUnreachableError, StateDirectoryError
from spark_jobs.storage.session import log_errors_once, open_session, served_session

SECONDS = 0.5
NOBODY = "sc://127.0.0.1:1"


@pytest.fixture(autouse=True)
def short_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "ANSWER_SECONDS", SECONDS)


@pytest.fixture
def silent_server() -> Iterator[str]:
    """The URL of a server that takes connections and says nothing, as a stopped process does."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"sc://127.0.0.1:{server.getsockname()[1]}"


def settings(tmp_path: Path, remote: str = "") -> Settings:
    return load_settings(tmp_path, state_dir=tmp_path / "state", spark=SparkSettings(remote=remote))


def announce(chosen: Settings, url: str) -> Path:
    file = connect_url_file(chosen)
    file.parent.mkdir(parents=True)
    file.write_text(f"{url}\n")
    return file


def refused(chosen: Settings) -> SparkUnreachableError:
    with pytest.raises(SparkUnreachableError) as caught:
        open_session(chosen)
    return caught.value


def test_a_configured_server_that_does_not_answer_is_an_error(tmp_path: Path) -> None:
    error = refused(settings(tmp_path, NOBODY))
    assert (error.remote, error.announced_in) == (NOBODY, None)
    assert SECONDS <= error.seconds < 60
    assert "spark.remote" in str(error.hint)


def test_an_announced_server_that_does_not_answer_is_an_error(tmp_path: Path) -> None:
    chosen = settings(tmp_path)
    file = announce(chosen, NOBODY)
    error = refused(chosen)
    assert (error.remote, error.announced_in) == (NOBODY, file)
    assert str(file) in str(error.detail)
    assert "make up" in str(error.hint)


def test_a_server_that_takes_connections_and_is_silent_is_an_error(
    tmp_path: Path, silent_server: str
) -> None:
    assert refused(settings(tmp_path, silent_server)).remote == silent_server


def test_a_malformed_server_address_is_an_error(tmp_path: Path) -> None:
    assert refused(settings(tmp_path, "http://127.0.0.1")).remote == "http://127.0.0.1"


def test_a_configured_server_goes_before_an_announced_one(tmp_path: Path) -> None:
    chosen = settings(tmp_path, NOBODY)
    announce(chosen, "sc://127.0.0.1:2")
    assert refused(chosen).remote == NOBODY


def test_a_session_is_of_this_process_where_no_server_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen, opened = settings(tmp_path), []
    monkeypatch.setattr(session, "driver_session", lambda one, *_, **__: opened.append(one))
    open_session(chosen)
    assert opened == [chosen]


def test_a_question_that_can_be_left_out_does_not_wait(
    tmp_path: Path, silent_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert served_session(settings(tmp_path)) is None
    monkeypatch.setattr(session, "HURRY_SECONDS", 0.3)
    with pytest.raises(SparkUnreachableError) as silent:
        served_session(settings(tmp_path, silent_server))
    assert 0.3 <= silent.value.seconds < 2

    # A refused connection is not tried again.
    monkeypatch.setattr(session, "HURRY_SECONDS", 60.0)
    chosen = settings(tmp_path)
    file = announce(chosen, NOBODY)
    began = time.monotonic()
    with pytest.raises(SparkUnreachableError) as down:
        served_session(chosen)
    assert down.value.announced_in == file
    assert time.monotonic() - began < 10

    # As a file of another account.
    file.unlink()
    file.mkdir()
    with pytest.raises(StateDirectoryError):
        served_session(chosen)


def test_an_error_of_a_query_is_raised_and_not_logged_too(capfd: pytest.CaptureFixture[str]):
    log_errors_once()
    try:
        raise AnalysisException("no such column")
    except AnalysisException as error:
        for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
            PySparkLogger.getLogger(name).exception(str(error), errorClass="UNRESOLVED_COLUMN")
    assert capfd.readouterr().err == ""
