"""docs/silver.md shows a case as it is, and names all keys of a record."""

from __future__ import annotations

import re

from spark_jobs.definitions.silver_case import Operation, RecordFile, Refusal
from spark_jobs.settings import REPOSITORY

PAGE = (REPOSITORY / "docs" / "silver.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## Testing a table\n")[2].partition("\n## ")[0]


def test_the_page_shows_a_case_as_it_is() -> None:
    case = (REPOSITORY / "tests/cases/silver/orders.yml").read_text(encoding="utf-8")
    assert f"```yaml\n{case}```\n" in SECTION


def test_the_page_names_all_keys_and_words() -> None:
    _, prose = SECTION.rsplit("```yaml", 1)
    named = set(re.findall(r"`(\w+)`", prose))
    assert named >= {*RecordFile.model_fields, *Operation}
    for condition in Refusal:
        assert f"`refused: {condition}`" in SECTION
