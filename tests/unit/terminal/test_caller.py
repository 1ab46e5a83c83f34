"""The file in which a program that runs a command finds why it failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.terminal.caller import FAILURE_FILE, Failure, report_failure, reported_failure


def test_a_file_that_cannot_be_written_ends_no_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(FAILURE_FILE, str(tmp_path))
    report_failure(Failure(condition="A"))
    assert f"{FAILURE_FILE} cannot be written" in capsys.readouterr().err
    monkeypatch.setenv(FAILURE_FILE, str(tmp_path / "file"))
    report_failure(Failure(condition="A"))
    assert reported_failure(tmp_path / "file") == Failure(condition="A")
