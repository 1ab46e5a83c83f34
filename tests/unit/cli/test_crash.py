"""Unexpected errors, interruptions, and a closed output pipe."""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spark_jobs.cli import main
from spark_jobs.cli.main import app
from spark_jobs.storage.errors import StateDirectoryError
from spark_jobs.terminal.crash import DIRECTORY, INTERNAL_ERROR, unforeseen
from tests.golden.declaration_cases import write_project

PROGRAM = [sys.executable, "-c", "from spark_jobs.cli.main import run; run()"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_project(tmp_path / "project", {})


def started(project: Path, *words: str, stdout: int = subprocess.PIPE) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*PROGRAM, "--project", str(project), *words],
        env={**os.environ, "TIDEMARK_STATE_DIR": str(project / "state")},
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_an_unforeseen_error_is_a_sentence_and_a_file(project: Path) -> None:
    """A directory in the place of the manifest raises an unexpected error."""
    (project / "state/manifest.json").mkdir(parents=True)
    with started(project, "compile") as process:
        printed, said = process.communicate(timeout=60)

    assert process.returncode == INTERNAL_ERROR == 70
    assert "Traceback" not in printed + said
    first, hint = said.splitlines()
    assert "IsADirectoryError" in first
    (file,) = (project / "state" / DIRECTORY).iterdir()
    assert str(file) in hint
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    details = file.read_text()
    assert "command: tidemark --project" in details
    assert "Traceback (most recent call last)" in details
    assert "sqlglot: " in details


def test_no_secret_value_is_in_the_details(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    secrets = project / "state/secrets"
    secrets.mkdir(parents=True)
    (secrets / "control.pgpass").write_text("127.0.0.1:5432:control:control:gh-of-file\n")
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(project / "state"))
    monkeypatch.setenv("WAREHOUSE_PASSWORD", "gh-of-environment")
    text = "gh-of-file gh-of-environment pg://me:gh-of-url@host password='gh-of-text'"
    error = unforeseen(ValueError(text), ["--project", str(project), "query", "gh-of-file"])

    assert error.details is not None
    told = error.details.read_text() + error.render()
    assert "ValueError: *** *** pg://me:***@host password=***" in told
    assert "gh-of" not in told


def test_without_a_state_directory_the_details_are_in_the_temporary_one(
    project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(project / "tidemark.yml"))
    (project / "tidemark.yml").write_text("{}\n")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    error = unforeseen(ValueError("x"), ["--project", str(project)])

    assert error.details is not None
    assert error.details.parent == tmp_path
    assert stat.S_IMODE(error.details.stat().st_mode) == 0o600


def test_old_details_are_removed(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(project / "state"))
    for _ in range(22):
        unforeseen(ValueError("x"), ["--project", str(project)])
    kept = list((project / "state" / DIRECTORY).iterdir())
    assert len(kept) == 20


@pytest.mark.parametrize("state", ["/dev/null", "/dev/null/state", "/proc/state", "x" * 5000])
def test_a_state_directory_that_cannot_be_is_a_mistake_in_the_settings(
    project: Path, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    monkeypatch.setenv("TIDEMARK_STATE_DIR", state)
    for verb in ("compile", "status"):
        error = CliRunner().invoke(app, ["--project", str(project), verb]).exception
        assert isinstance(error, StateDirectoryError), error
        assert "state_dir" in (error.hint or "")


@pytest.mark.parametrize(
    "words",
    [
        ("status", "spend"),
        ("replay", "status"),
        ("quarantine", "show", "orders"),
        ("query", "SELECT 1 AS a"),
    ],
)
def test_a_limit_beyond_every_table_is_a_mistake_in_the_command_line(
    project: Path, words: tuple[str, ...]
) -> None:
    asked = ["--project", str(project), *words, "--limit", "9" * 23]
    assert CliRunner().invoke(app, asked).exit_code == 2


def test_an_interruption_ends_with_130_and_no_traceback(project: Path) -> None:
    """A FIFO holds the verb where it reads the manifest."""
    (project / "state").mkdir()
    manifest = project / "state/manifest.json"
    os.mkfifo(manifest)
    # Newer than every declaration, or the project is compiled first.
    os.utime(manifest, (time.time() + 60,) * 2)
    with started(project, "status") as process, manifest.open("w"):
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said.strip()) == (130, "")


def test_a_closed_output_pipe_is_not_an_error(project: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        with started(project, "validate", "--no-spark", stdout=writing) as process:
            _, said = process.communicate(timeout=60)
    finally:
        os.close(writing)
    assert (process.returncode, said) == (1, "")


@pytest.mark.parametrize("name", ["nowhere", "file"])
def test_a_project_that_does_not_exist_is_a_mistake_in_the_command_line(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "file").touch()
    place = str(tmp_path / name)

    result = CliRunner().invoke(app, ["--project", place, "validate", "--no-spark"])

    assert result.exit_code == 2
    assert "no directory" in result.output


@pytest.mark.parametrize(
    ("words", "status", "condition"),
    [
        (("status", "nothing", "--json"), 1, "VIEW_UNKNOWN"),
        (("query", "--json", "SELECT 1"), 2, None),
        (("status", "nothing"), 1, None),
        (("query", "--format", "csv", "SELECT a FROM silver.nothing", "--", "--json"), 2, None),
    ],
)
def test_with_json_an_error_is_json_on_the_output(
    project: Path, words: tuple[str, ...], status: int, condition: str | None
) -> None:
    with started(project, *words) as process:
        printed, said = process.communicate(timeout=60)
    assert process.returncode == status, said
    if condition is None:
        assert printed == ""
        return
    (problem,) = json.loads(printed)["problems"]
    assert problem["condition"] == condition
    assert f"{problem['primary']} [{condition}]" in said


def test_with_json_each_of_several_errors_is_a_problem(tmp_path: Path) -> None:
    """They are those of ``validate --json``."""
    wrong = {"sources/orders.yml": "shape: json\n", "sql/gold/best.sql": "SELECT 1"}
    project = write_project(tmp_path / "wrong", wrong)
    found = {}
    for words in (("validate", "--no-spark"), ("plan",), ("graph",)):
        with started(project, *words, "--json") as process:
            printed, _ = process.communicate(timeout=60)
        assert process.returncode == 1
        found[words[0]] = json.loads(printed)["problems"]
    assert len(found["validate"]) > 1
    assert found["plan"] == found["graph"] == found["validate"]


def test_with_json_an_unforeseen_error_is_json_too(project: Path) -> None:
    (project / "state/manifest.json").mkdir(parents=True)
    with started(project, "status", "--json") as process:
        printed, _ = process.communicate(timeout=60)
    assert process.returncode == INTERNAL_ERROR
    (problem,) = json.loads(printed)["problems"]
    assert problem["condition"] == "INTERNAL_ERROR"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="not on this system")
@pytest.mark.parametrize("words", [["graph", "--json"], ["graph"]])
def test_a_full_disk_under_the_output_is_no_internal_error(project: Path, words: list[str]) -> None:
    with Path("/dev/full").open("w") as full, started(project, *words, stdout=full.fileno()) as run:
        _, said = run.communicate(timeout=60)
    assert run.returncode == 1
    assert "[DISK_FULL]" in said
    assert "Traceback" not in said
    assert not (project / "state" / DIRECTORY).exists()


# A command that ends while Arrow reads a file through Python, in a thread of its own.
READING = """
import io, sys, threading, time
import pyarrow as pa
import pyarrow.parquet as pq
from spark_jobs.cli import main

written = io.BytesIO()
pq.write_table(pa.table({"a": list(range(1000))}), written)
reading = threading.Event()

class Slow(io.BytesIO):
    def read(self, *size):
        if threading.current_thread() is not threading.main_thread():
            reading.set()
            time.sleep(1)
        return super().read(*size)

def command():
    batches = pq.ParquetFile(Slow(written.getvalue()), pre_buffer=True).iter_batches()
    threading.Thread(target=lambda: next(batches), daemon=True).start()
    assert reading.wait(30)
    print("done")
    sys.exit(STATUS)

main.app = command
main.run()
"""


@pytest.mark.parametrize(("ended", "status"), [("3", 3), ("0", 0), ("None", 0), ("'no'", 1)])
def test_a_command_that_is_done_is_not_aborted_by_a_native_thread(ended: str, status: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", READING.replace("STATUS", ended)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stdout) == (status, "done\n")
    assert done.stderr == ("no\n" if status == 1 else "")


@pytest.mark.parametrize("code", [errno.EACCES, errno.EPERM, errno.EROFS])
def test_a_file_of_another_account_is_no_internal_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], code: int
) -> None:
    def refuse() -> None:
        raise OSError(code, os.strerror(code), "/shop/.vscode")

    monkeypatch.setattr(main, "app", refuse)
    monkeypatch.setattr(sys, "argv", ["tidemark", "schema", "--write"])
    assert main.finished() == 1
    said = capsys.readouterr().err
    assert f"/shop/.vscode: {os.strerror(code)} [PERMISSION_DENIED]" in " ".join(said.split())


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("file", "validate"),
        ("file/state", "upgrade --check"),
        ("s" * 300, "validate"),
        ("state", "docs build {}/file/site"),
    ],
)
def test_a_path_that_cannot_be_one_is_no_internal_error(
    project: Path, tmp_path: Path, state: str, words: str
) -> None:
    (tmp_path / "file").touch()
    done = subprocess.run(
        [*PROGRAM, "--project", str(project), *words.format(tmp_path).split()],
        env={**os.environ, "TIDEMARK_STATE_DIR": str(tmp_path / state)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "INTERNAL_ERROR" not in done.stderr
    assert done.returncode < INTERNAL_ERROR


def test_a_limit_on_the_size_of_files_is_named(project: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        ["bash", "-c", 'ulimit -f 2; exec "$@"', "bash", *PROGRAM, "compile"],
        env={
            **os.environ,
            "TIDEMARK_PROJECT": str(project),
            "TIDEMARK_STATE_DIR": str(tmp_path / "state"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert "a write failed: File too large" in done.stderr
    assert "[DISK_FULL]" in done.stderr
    assert "ulimit -f" in done.stderr
    assert done.returncode == 1


def test_a_permission_error_that_names_no_file_is_unforeseen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], project: Path
) -> None:
    """Nobody could follow a hint about it."""

    def refuse() -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(project / "state"))
    monkeypatch.setattr(main, "app", refuse)
    monkeypatch.setattr(sys, "argv", ["tidemark", "--project", str(project), "status"])
    assert main.finished() == INTERNAL_ERROR
    assert "[INTERNAL_ERROR]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("closed", "words", "status"),
    [
        ("<&- >&- 2>&-", "graph --json", 0),
        (">&-", "graph", 0),
        (">&-", "status nothing --json", 1),
        ("2>&-", "status nothing", 1),
    ],
)
def test_a_closed_stream_is_as_one_that_nobody_reads(
    project: Path, closed: str, words: str, status: int
) -> None:
    """Without one, the next file that is opened would have its number and get the output."""
    line = f'"$@" --project {project} {words} {closed}; echo $? > {project}/status'
    done = subprocess.run(
        ["sh", "-c", line, "sh", *PROGRAM],
        env={**os.environ, "TIDEMARK_STATE_DIR": str(project / "state")},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "Traceback" not in done.stderr
    assert int((project / "status").read_text()) == status
    assert not (project / "state" / DIRECTORY).exists()
