"""docs/views.md lists what sql/gold/ holds."""

from __future__ import annotations

import os
from pathlib import Path

from spark_jobs.definitions.durations import duration_text
from spark_jobs.graph.manifest import GoldEntry
from spark_jobs.settings import REPOSITORY
from tests.shipped import shipped_project

PAGE = Path(REPOSITORY, "docs/views.md")
HEAD = "| view | columns | description | refreshed | maintenance |\n|---|---|---|---|---|\n"


def line(entry: GoldEntry) -> str:
    every = entry.every_seconds
    policy = f"every {duration_text(every)}" if every else str(entry.refresh)
    strategy = "full" if entry.maintenance is None else entry.maintenance.rule.words
    columns = ", ".join(column.name for column in entry.columns)
    words = " ".join(entry.description.split())
    return f"| `{entry.name}` | {columns} | {words} | {policy} | {strategy} |\n"


def test_the_page_lists_every_view() -> None:
    page = PAGE.read_text(encoding="utf-8")
    start = page.index(HEAD) + len(HEAD)
    end = page.index("\n\n", start - 1) + 1
    views = shipped_project().gold
    table = "".join(line(entry) for _, entry in sorted(views.items()))
    if os.environ.get("REWRITE"):
        PAGE.write_text(page[:start] + table + page[end:], encoding="utf-8")
        page = PAGE.read_text(encoding="utf-8")

    assert page[start:].startswith(table + "\n")


def test_the_page_shows_a_case_as_it_is() -> None:
    case = Path(REPOSITORY, "tests/cases/gold/orders_by_status.yml").read_text(encoding="utf-8")
    assert f"```yaml\n{case}```\n" in PAGE.read_text(encoding="utf-8")
