"""docs/bad-input.md shows the table that the Spark test holds, and every reason has its words."""

from __future__ import annotations

from pathlib import Path

from spark_jobs.definitions.quarantine_reasons import QuarantineReason
from spark_jobs.project_files import UnreadableFileError
from spark_jobs.settings import REPOSITORY
from spark_jobs.silver.parse.payloads import MAX_DEPTH
from spark_jobs.silver.parse.typed import CLOCKS_DIFFER
from tests.spark.silver.bad_input import CHANGE_CLASSES, EVENT_CLASSES, BadInput
from tests.unit.test_project_files import NOT_READ, NOT_UNDERSTOOD, YAML_ONLY


def text_of(paper: str) -> str:
    return Path(REPOSITORY, "docs", paper).read_text(encoding="utf-8")


def line(one: BadInput) -> str:
    disposition, reason = (*one.ends[-1], "")[:2]
    cells = (one.number, one.what, disposition, f"`{reason}`" if reason else "")
    return f"| {' | '.join(cells)} |".replace("|  |", "| |")


def test_the_page_shows_every_class() -> None:
    shown = [row for row in text_of("bad-input.md").splitlines() if row.startswith("| B")]
    assert shown == [line(one) for one in (*EVENT_CLASSES, *CHANGE_CLASSES)]


def test_the_page_shows_every_kind_of_file() -> None:
    rows = [row for row in text_of("bad-input.md").splitlines() if row.startswith("| F")]
    shown = {row.split(" | ")[1]: row.split(" | ")[3].strip(" |") for row in rows}
    refused = dict.fromkeys(NOT_READ, f"`{UnreadableFileError.condition}`")
    assert shown == {**refused, **dict.fromkeys({**NOT_UNDERSTOOD, **YAML_ONLY}, "")}
    assert len(rows) == len(shown)


def test_every_reason_is_explained_and_shown() -> None:
    page, runbook = text_of("bad-input.md"), text_of("runbooks/records-in-quarantine.md")
    for reason in QuarantineReason:
        assert f"`{reason}`" in page
        assert f"`{reason}`" in runbook


def test_numbers_are_those_of_the_code() -> None:
    assert f"more than {MAX_DEPTH} " in text_of("bad-input.md")
    assert CLOCKS_DIFFER == "INTERVAL 1 DAY"
