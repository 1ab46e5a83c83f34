from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from select import select

import pytest
from typer.testing import CliRunner, Result

from spark_jobs.cli.main import app
from spark_jobs.cli.shell import history
from spark_jobs.serving.sql.ops_tables import OPS_TABLES
from spark_jobs.settings import REPOSITORY
from tests.shipped import put_compiled_views, shipped_project

SECONDS = 60


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory without tables; the project was compiled before."""
    put_compiled_views(tmp_path)
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


def typed(*lines: str) -> Result:
    """What the shell answers to lines that come through a pipe."""
    return CliRunner().invoke(app, ["--project", str(REPOSITORY), "shell"], input="\n".join(lines))


def test_every_table_is_listed_with_what_it_is(state: Path) -> None:
    answer = typed(r"\d")
    manifest = shipped_project()
    for layer in (manifest.sources, manifest.silver, manifest.gold):
        for entry in layer.values():
            assert str(entry.table_name) in answer.stdout
            assert (entry.description or "").split()[0] in answer.stdout
    assert set(OPS_TABLES) <= set(answer.stdout.split())
    assert answer.exit_code == 0


@pytest.mark.parametrize(
    ("table", "parts"),
    [
        ("gold.user_revenue", ("user_id", "bigint", "total_revenue", "decimal(12,2)")),
        ("OPS.quarantine;", ("latest_arrival", "timestamp", "arrived in bronze")),
    ],
)
def test_a_table_is_described_by_its_columns(
    state: Path, table: str, parts: tuple[str, ...]
) -> None:
    answer = typed(rf"\d {table}")
    assert all(part in answer.stdout for part in parts), answer.stdout


def test_an_error_is_printed_and_does_not_end_the_shell(state: Path) -> None:
    answer = typed(
        "DELETE FROM gold.user_revenue;",
        "",
        "SELECT *",
        "FROM gold.user_revenu;",
        "SELECT * FROM gold.user_revenue;",
        r"\d gold.user_revenu",
        r"\?",
        "SELECT a FROM",
    )
    for condition in (
        "QUERY_NOT_READ_ONLY",
        "UNKNOWN_TABLE",
        "TABLE_NOT_WRITTEN",
        "TABLE_UNKNOWN",
        "SQL_SYNTAX",
    ):
        assert answer.stderr.count(f"[{condition}]") == 1, answer.stderr
    assert "query:2:6" in answer.stderr
    assert "list the tables" in answer.stdout
    assert answer.exit_code == 1


@dataclass
class Terminal:
    """The side of whoever types; ``seen`` is what came and was not yet waited for."""

    side: int
    seen: bytes = b""

    def type(self, keys: bytes) -> None:
        os.write(self.side, keys)

    def wait(self, until: str, *, pressing: bytes = b"") -> str:
        """What is shown up to a text; a key is pressed now and then until it is there.

        Not too often: with an interruption, a terminal throws away what was to be shown.
        """
        for second in range(SECONDS):
            if second % 10 == 0:
                self.type(pressing)
            while until.encode() not in self.seen and select([self.side], [], [], 1)[0]:
                self.seen += os.read(self.side, 65536)
            if until.encode() in self.seen:
                shown, _, self.seen = self.seen.partition(until.encode())
                return shown.decode()
        raise AssertionError((until, self.seen))


@contextmanager
def terminal() -> Iterator[Terminal]:
    """A shell on a terminal, which must end by itself."""
    side, other = pty.openpty()
    program = Path(sys.executable).parent / "tidemark"
    with subprocess.Popen(
        ["setsid", "--ctty", "--wait", program, "--project", REPOSITORY, "shell"],
        stdin=other,
        stdout=other,
        stderr=other,
        env={**os.environ, "TERM": "xterm"},
    ) as shell:
        os.close(other)
        try:
            yield Terminal(side)
            assert shell.wait(SECONDS) == 0
        finally:
            shell.kill()
            os.close(side)


def test_a_shell_needs_no_history(tmp_path: Path) -> None:
    (tmp_path / "state").touch()
    # No account can write there, root neither.
    with history(tmp_path / "state" / "shell_history"):
        pass


@pytest.mark.parametrize(
    ("text", "told", "code"),
    [
        (b"SHOW SCHEMAS;\nSELECT '\xff';\nSHOW SCHEMAS;\n", "not UTF-8", 2),
        ("\ufeffSHOW SCHEMAS;\n".encode(), "silver", 0),
    ],
)
def test_a_script_is_utf_8(state: Path, text: bytes, told: str, code: int) -> None:
    for words in (("shell",), ("query", "-")):
        given = text if words == ("shell",) or code else text.replace(b";", b"")
        done = CliRunner().invoke(app, ["--project", str(REPOSITORY), *words], input=given)
        assert (told in done.output, done.exit_code) == (True, code), done.output


def test_a_terminal_edits_lines_stops_queries_and_remembers(state: Path) -> None:
    with terminal() as screen:
        screen.wait("tidemark> ")
        screen.type(b"SELECT 1\r")
        screen.wait("...> ")
        # The shell hears it at the next key if it came while the prompt was being drawn.
        screen.wait("tidemark> ", pressing=b"\x03")
        screen.type(b"DROP TABLE gold.user_revenue;\r")
        screen.wait("QUERY_NOT_READ_ONLY")
        screen.wait("tidemark> ")
        screen.type(b"\\d ops.quarantine\r")
        screen.wait("latest_arrival")
        screen.wait("tidemark> ")
        screen.type(b"\x04")
    remembered = state / "shell_history"
    assert remembered.stat().st_mode & 0o077 == 0
    assert "DROP TABLE gold.user_revenue;" in remembered.read_text()
    with terminal() as screen:
        screen.wait("tidemark> ")
        screen.type(b"\x1b[A")  # the key that goes up
        screen.wait("\\d ops.quarantine")
        screen.type(b"\r")
        screen.wait("latest_arrival")
        screen.wait("tidemark> ")
        screen.type(b"\\q\r")


@pytest.mark.parametrize(
    ("question", "there", "missing"),
    [
        ("SHOW TABLES;", "silver.orders", "delta"),
        ("show tables in gold;", "gold.user_revenue", "silver.orders"),
        ("SHOW TABLES LIKE 'user*|titles';", "silver.titles", "silver.orders"),
        ("SHOW TABLES IN `silver` 'user%';", "silver.users", "gold.user_revenue"),
        ("SHOW SCHEMAS;", "ops", "silver.orders"),
        ("DESCRIBE gold.user_revenue;", "total_revenue", "silver.orders"),
        ("desc table extended `gold`.`user_revenue`;", "decimal(12,2)", "silver.orders"),
        ("SHOW COLUMNS IN silver.orders;", "product_id", "total_revenue"),
    ],
)
def test_show_and_describe_are_answered(
    state: Path, question: str, there: str, missing: str
) -> None:
    answer = typed(question)
    assert answer.exit_code == 0, answer.stderr
    assert there in answer.stdout
    assert missing not in answer.stdout


def test_other_forms_of_show_name_those_that_are_answered(state: Path) -> None:
    answer = typed("SHOW CREATE TABLE gold.user_revenue;", "DESCRIBE gold.user_revenu;")
    assert answer.stderr.count("[CATALOG_QUESTION]") == 1
    assert "SHOW TABLES [IN layer]" in answer.stderr
    assert 'Did you mean "gold.user_revenue"?' in answer.stderr
