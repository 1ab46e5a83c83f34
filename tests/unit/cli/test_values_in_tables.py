"""Values of rows and texts of errors are no markup in the tables of commands."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from spark_jobs.cli import reprocess, source, verify
from spark_jobs.cli.source import BackfilledDeletes
from spark_jobs.errors import SettingError

TEXT = "[/b] [red]x[/red]"


def printed(*tables: Any) -> str:
    out = io.StringIO()
    console = Console(file=out, width=200)
    for one in tables:
        console.print(one)
    return out.getvalue()


def test_rows_that_differ_from_their_sql_are_shown_as_they_are() -> None:
    rows = [{"": "+", "[b]name": TEXT}, {"": "-", "[b]name": None}]
    text = printed(verify.examples_table("v", cast(Any, SimpleNamespace(examples=rows))))
    assert TEXT in text
    assert "[b]name" in text


def test_the_text_of_an_error_is_shown_as_it_is() -> None:
    error = SettingError("x", TEXT)
    assert TEXT in printed(verify.findings_table([("v", error)]))


def test_keys_of_missed_deletes_are_shown_as_they_are() -> None:
    found = BackfilledDeletes("shop", 1, 9, 0, ({"code": TEXT},), written=True)
    assert TEXT in printed(source.backfill_table([found]))
    # The second is the older name.
    assert found.as_dict()["written"] is found.as_dict()["told"] is True


def test_details_of_records_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    one = SimpleNamespace(
        partition=0, offset=1, disposition="rejected", reason="UNKNOWN_FIELD", detail=TEXT
    )
    reprocess.print_outcomes(cast(Any, [one]), as_json=False, dry_run=True)
    assert TEXT in capsys.readouterr().out
