"""What a person may ask of ``quarantine reprocess``, and the files that go back and forth."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
import typer
from click.testing import Result
from deltalake import write_deltalake
from typer.testing import CliRunner

from spark_jobs.cli.main import app
from spark_jobs.cli.quarantine import record_line, record_text, write_private
from spark_jobs.cli.reprocess import fixed_values, places, print_outcomes
from spark_jobs.names import Disposition
from spark_jobs.settings import load_settings
from spark_jobs.silver.check.quarantine import RejectedRecord
from spark_jobs.silver.errors import FixedValuesFileError, NotInQuarantineError
from spark_jobs.silver.repair.requests import Reprocessed
from spark_jobs.storage import session
from spark_jobs.storage.lake import Lake
from spark_jobs.terminal.faithful_json import parse, printed
from spark_jobs.terminal.payloads import READABLE_CHARACTERS, readable
from tests.golden.declaration_cases import write_project

NOW = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
EXACT = '{"a": 1.10, "a": 1e400, "big": 123456789012345678901234567890, "t": "\u00fc\\u202e"}'


def record(value: bytes | None, offset: int = 17) -> RejectedRecord:
    return RejectedRecord(
        topic="orders",
        partition=2,
        offset=offset,
        timestamp=NOW,
        arrived_at=NOW,
        quarantined_at=NOW,
        attempts=3,
        reason="TYPE_MISMATCH",
        detail="tags",
        key=b"k",
        value=value,
        headers=(),
    )


VALUES = [EXACT.encode(), b"[1, 2]", b'{"a": ', b"\xff\x00", b"", b"plain \x1b[2J"]


def test_what_show_writes_is_what_readmit_reads(tmp_path: Path) -> None:
    file = tmp_path / "fixed.jsonl"
    lines = [record_line(record(value, offset)) for offset, value in enumerate(VALUES)]
    write_private(file, "\n".join([*lines, ""]))
    assert file.stat().st_mode & 0o777 == 0o600
    found = fixed_values(file)
    assert list(found) == [(2, offset) for offset in range(len(VALUES))]
    assert [found[2, offset] for offset in range(1, len(VALUES))] == VALUES[1:]
    # An object is rewritten, with every digit and every key.
    assert found[2, 0].decode() == printed(parse(EXACT))
    assert json.loads(lines[0])["detail"] == "tags"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the file holds no record"),
        ('{"partition": 0, "offset": 1}', "value is neither an object nor a text"),
        ('{"partition": 0, "offset": 1, "value": null}', "value is neither an object nor a text"),
        (
            '{"partition": 0, "offset": 1.5, "value": "x"}',
            "partition or offset is missing or no whole number",
        ),
        ('{"offset": 1, "value": "x"}', "partition or offset is missing or no whole number"),
        ("[]", "partition or offset is missing or no whole number"),
        ('{"partition": 0, "offset": 1, "value_base64": "%"}', "value_base64 is not Base64"),
        ('{"partition": 0, "offset": 1, "value": "x"}\n' * 2, "the record is listed twice"),
    ],
)
def test_a_file_that_does_not_read_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "fixed.jsonl"
    file.write_text(text)
    with pytest.raises(FixedValuesFileError) as caught:
        fixed_values(file)
    assert caught.value.problem == problem


def test_offsets() -> None:
    assert list(places("0:7,1:3-5")) == [(0, 7), (1, 3), (1, 4), (1, 5)]
    for text in ("7", "0:5-3", "0:", "a:1", "0:1-99999999"):
        with pytest.raises(typer.BadParameter):
            list(places(text))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--discard", "--reason", "NOT_UTF8"], "--discard needs --reason-text"),
        (["--discard", "--reason-text", "noise"], "--discard needs --reason or --offsets"),
        (["--with", "x.jsonl", "--offsets", "0:1"], "--with names its records itself"),
        (["--with", "missing.jsonl"], "missing.jsonl"),
    ],
)
def test_conflicting_options_are_refused(tmp_path: Path, arguments: list[str], told: str) -> None:
    command = ["--project", str(tmp_path), "quarantine", "reprocess", "orders", *arguments]
    found = CliRunner().invoke(app, command, env={"COLUMNS": "200"})
    assert found.exit_code == 2
    assert told in found.output


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        (b'{"a":[1.10,{}],"b":"\x7f"}', '{\n  "a": [\n    1.10,\n    {}\n  ],\n  "b": "\\x7f"\n}'),
        (b"a\nb\x1b", "a\nb\\x1b"),
        (b"\x1f\x8b!", f"00000000  {'1f 8b 21':<48} ..!"),
        (b"[" * 5000, "[" * 5000),
    ],
)
def test_a_whole_value_is_readable(value: bytes | None, text: str) -> None:
    assert readable(value, raw=False) == text


def test_a_long_value_is_cut_unless_all_is_asked_for() -> None:
    long = b"x" * (READABLE_CHARACTERS + 1)
    assert readable(long, raw=False).endswith("(20,001 bytes; --raw shows all)")
    assert readable(long, raw=True) == long.decode()


def test_a_whole_record() -> None:
    shown = record_text(record(b'{"a": 1}'), raw=False, whole=True).splitlines()
    assert shown[0] == "orders partition 2 offset 17: TYPE_MISMATCH tags"
    assert shown[-4:] == ["  value", "{", '  "a": 1', "}"]
    assert "  tried   3" in shown


def test_outcomes_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    found = [
        Reprocessed(0, 7, Disposition.APPLIED, None, None),
        Reprocessed(0, 8, Disposition.QUARANTINED, "TYPE_MISMATCH", "tags"),
    ]
    print_outcomes(found, as_json=False, dry_run=True)
    shown = capsys.readouterr().out
    assert "Would become: 1 applied, 1 quarantined." in shown
    assert "TYPE_MISMATCH tags" in shown
    print_outcomes(found, as_json=True, dry_run=False)
    assert json.loads(capsys.readouterr().out)[1]["reason"] == "TYPE_MISMATCH"
    print_outcomes([], as_json=False, dry_run=False)
    assert "No such record" in capsys.readouterr().out


class SparkStartedError(Exception):
    """A session was asked for."""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose quarantine of ``clicks`` has one record, at 0:7."""

    def started(*_: object, **__: object) -> None:
        raise SparkStartedError

    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr(session, "driver_session", started)
    rejected = {"partition": [0], "offset": [7], "reason": ["TOO_LARGE"]}
    write_deltalake(str(tmp_path / "state/lake/_quarantine/clicks"), pa.table(rejected))
    return write_project(tmp_path / "project", {})


def reprocess(root: Path, *words: str) -> Result:
    return CliRunner().invoke(app, ["--project", str(root), "quarantine", "reprocess", *words])


def decide(root: Path, place: tuple[int, int]) -> None:
    """A decision whose record may still be in quarantine."""
    decided = {"partition": [place[0]], "offset": [place[1]], "epoch": [1], "outcome": ["applied"]}
    write_deltalake(Lake(load_settings(root).lake).releases("clicks"), pa.table(decided))


@pytest.mark.parametrize("run", [("--dry-run",), ()], ids=["dry run", "run"])
@pytest.mark.parametrize(
    "words", [("orders",), ("clicks", "--reason", "NOT_UTF8"), ("silver.clicks", "--reason", "")]
)
def test_nothing_to_reprocess_needs_no_spark(
    root: Path, words: tuple[str, ...], run: tuple[str, ...]
) -> None:
    done = reprocess(root, *words, *run)
    assert (done.exit_code, done.output) == (0, "No such record is in quarantine.\n")
    assert json.loads(reprocess(root, *words, *run, "--json").stdout) == []


def test_a_record_that_was_never_rejected_is_refused_before_spark(root: Path) -> None:
    refused = reprocess(root, "clicks", "--offsets", "0:7,0:8").exception
    assert isinstance(refused, NotInQuarantineError)
    assert refused.places == ((0, 8),)
    decide(root, (0, 8))
    assert reprocess(root, "clicks", "--offsets", "0:8").output.startswith("No such record")


def test_what_is_in_quarantine_is_judged_by_spark(root: Path) -> None:
    for words in ((), ("--reason", "TOO_LARGE"), ("--offsets", "0:7")):
        assert isinstance(reprocess(root, "clicks", *words).exception, SparkStartedError)


def test_a_killed_run_is_finished_whatever_is_asked_for(root: Path) -> None:
    decide(root, (0, 7))
    other = ("clicks", "--reason", "NOT_UTF8")
    assert isinstance(reprocess(root, *other).exception, SparkStartedError)
    assert reprocess(root, *other, "--dry-run").output.startswith("No such record")
