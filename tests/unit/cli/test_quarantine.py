"""How records in quarantine are shown."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from spark_jobs.cli.main import app
from spark_jobs.cli.quarantine import record_json, record_line, record_text, write_private
from spark_jobs.serving.report.status_tables import rejections_table
from spark_jobs.settings import REPOSITORY
from spark_jobs.silver.check.quarantine import RejectedRecord, Rejection
from spark_jobs.terminal.payloads import shown
from tests.shipped import put_compiled_views

NOW = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
RECORD = RejectedRecord(
    topic="orders",
    partition=2,
    offset=17,
    timestamp=NOW,
    arrived_at=NOW,
    quarantined_at=NOW,
    attempts=1,
    reason="TYPE_MISMATCH",
    detail="tags",
    key=None,
    value=b'{"tags": [1, "x"]}',
    headers=(("trace", b"7"),),
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        (b"", ""),
        ("\u00fc \U0001f600".encode(), "\u00fc \U0001f600"),
        (b"\xff\x00\n\x1b[2J", r"\xff\x00\n\x1b[2J"),
        ("\u202eabc".encode(), r"\u202eabc"),
        (b"x" * 120, "x" * 120),
        (b"x" * 1001, "x" * 120 + "... (1,001 bytes)"),
    ],
)
def test_bytes_are_shown_as_harmless_text(value: bytes | None, text: str):
    assert shown(value, raw=False) == text


def test_raw_shows_every_byte():
    assert shown(b"x" * 1001, raw=True) == "x" * 1001


def test_a_record_in_lines():
    assert record_text(RECORD, raw=False).splitlines() == [
        "orders partition 2 offset 17: TYPE_MISMATCH tags",
        "  arrived 2026-03-01 12:30:00 UTC",
        "  key     NULL",
        '  value   {"tags": [1, "x"]}',
        "  header  trace: 7",
    ]


def test_a_record_for_programs():
    found = record_json(RECORD, raw=False)
    assert (found["key"], found["value"]) == (None, '{"tags": [1, "x"]}')
    assert (found["partition"], found["offset"], found["reason"]) == (2, 17, "TYPE_MISMATCH")
    whole = record_json(RECORD, raw=True)
    assert (whole["key_base64"], whole["headers"]) == (None, [["trace", "Nw=="]])
    assert "value" not in whole


def test_counts_by_table_and_reason():
    text = io.StringIO()
    rows = [Rejection("orders", "TYPE_MISMATCH", 1200, NOW)]
    Console(file=text, width=100).print(rejections_table(rows))
    for word in ("orders", "TYPE_MISMATCH", "1,200", "2026-03-01 12:30:00 UTC"):
        assert word in text.getvalue()


@pytest.mark.parametrize(
    ("words", "condition"),
    [(["orders"], None), (["silver.orders", "users"], None), (["coupons"], "SILVER_TABLE_UNKNOWN")],
)
def test_quarantine_is_listed_for_the_tables_that_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], condition: str | None
) -> None:
    put_compiled_views(tmp_path)
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path))
    result = CliRunner().invoke(app, ["--project", str(REPOSITORY), "quarantine", "list", *words])
    assert getattr(result.exception, "condition", None) == condition
    if condition is None:
        assert result.stdout == "Nothing is in quarantine.\n"


def test_half_of_a_character_is_written_for_correction(tmp_path: Path) -> None:
    """JSON may hold it as an escape, and it is a reason to reject a record."""
    record = replace(RECORD, value=b'{"name": "\\ud83d", "\\udc00": 1.10}')
    line = record_line(record)
    write_private(tmp_path / "records.jsonl", f"{line}\n")
    told = (tmp_path / "records.jsonl").read_text(encoding="utf-8")
    assert json.loads(told)["value"] == {"name": "\ud83d", "\udc00": 1.1}
    assert "1.10" in told


def test_names_of_headers_and_details_do_not_control_the_terminal() -> None:
    record = replace(RECORD, detail="a\x1b[2J", headers=(("\x1b]0;x\x07\nlie", b"7"),))
    for whole in (False, True):
        text = record_text(record, raw=False, whole=whole)
        assert all(one.isprintable() for one in text.splitlines())
        assert not any(one.startswith("lie") for one in text.splitlines())


@pytest.mark.parametrize(
    "words",
    [
        ("--offset", "9223372036854775808"),
        ("--offset", "-1"),
        ("--partition", "2147483648"),
        ("--partition", "-1"),
    ],
)
def test_what_is_no_place_in_a_topic_is_a_wrong_command_line(
    tmp_path: Path, words: tuple[str, str]
) -> None:
    command = ["--project", str(tmp_path), "quarantine", "show", "clicks", *words]
    assert CliRunner().invoke(app, command).exit_code == 2


def test_records_in_a_file_that_was_there_are_the_owners_alone(tmp_path: Path) -> None:
    file = tmp_path / "fixed.jsonl"
    file.write_text("older\n")
    file.chmod(0o644)
    write_private(file, "records\n")
    assert file.read_text() == "records\n"
    assert file.stat().st_mode & 0o777 == 0o600
