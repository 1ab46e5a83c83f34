"""Which views a preview computes, and how it is written down."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.base.errors import ViewUnknownError
from spark_jobs.graph.compile import compile_project
from spark_jobs.graph.manifest import Manifest
from spark_jobs.rollout.preview import Preview, changed_views
from spark_jobs.rollout.row_difference import _sample
from spark_jobs.serving.report.diff_text import diff_markdown
from spark_jobs.state.types import utc_now
from spark_jobs.storage.lake import Lake, TableLocations
from tests.golden.declaration_cases import RIGHT, write_project
from tests.unit.deploy.test_compare import BASE, PLAIN


def compiled(folder: Path, files: dict[str, str | None]) -> Manifest:
    folder.mkdir()
    return compile_project(write_project(folder, {**BASE, **files}))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (PLAIN, {}),
        (
            PLAIN.replace("o.amount", "-o.amount AS amount"),
            {"plain": "changed", "reader": "reads gold.plain", "last": "reads gold.plain"},
        ),
        (PLAIN.replace("o.amount\n", "o.amount,\n  o.created_at\n"), {"plain": "changed"}),
    ],
)
def test_changed_views_include_their_readers(
    tmp_path: Path, sql: str, expected: dict[str, str]
) -> None:
    before = compiled(tmp_path / "before", {})
    after = compiled(tmp_path / "after", {"sql/gold/plain.sql": sql})

    assert changed_views(before, after) == expected
    assert list(changed_views(before, after)) == list(expected)


def test_a_view_that_is_asked_for(tmp_path: Path) -> None:
    before = compiled(tmp_path / "before", {"sql/gold/last.sql": None})
    after = compiled(tmp_path / "after", {"sql/gold/spend.sql": RIGHT["sql/gold/spend.sql"]})

    assert changed_views(before, after) == {"last": "new"}
    assert changed_views(before, after, ["gold.spend"]) == {"spend": "unchanged"}
    with pytest.raises(ViewUnknownError):
        changed_views(before, after, ["nothing"])


def test_readers_of_a_view_without_its_inputs_have_no_rows_either(tmp_path: Path) -> None:
    """A source, a silver table and two tiers of views are new: nothing of them is there yet."""
    before = compiled(
        tmp_path / "before",
        {
            "sql/gold/plain.sql": None,
            "sql/gold/last.sql": None,
            "sql/gold/reader.sql": None,
            "sql/gold/distant.sql": None,
        },
    )
    after = compiled(tmp_path / "after", {})
    context = SimpleNamespace(manifest=after, locations=TableLocations(Lake(str(tmp_path)), after))
    preview = Preview(cast(GoldContext, context), before, utc_now())
    views = {"plain": "new", "reader": "new"}

    found = list(preview.differences(views))

    assert [one.detail for one in found] == ["silver.orders does not exist yet"] * 2


def test_a_sample_shows_no_column_that_does_not_differ() -> None:
    """In Spark NaN equals NaN."""
    row = {"o_there": True, "n_there": True, "o_k0": 1, "n_k0": 1}
    row |= {"o_c0": float("nan"), "n_c0": float("nan"), "o_c1": "a", "n_c1": "b"}
    assert _sample(row, ["id"], ["rate", "word"], []) == {"": "changed", "id": "1", "word": "a → b"}


def test_markdown_escapes_what_would_break_a_table() -> None:
    one = {
        "table": "gold.spend",
        "why": "changed",
        "detail": None,
        "rows_before": 1000,
        "rows_after": 1001,
        "added": 1,
        "removed": 0,
        "changed": None,
        "columns": {"amount": 3},
        "columns_added": ["tax"],
        "columns_removed": ["note"],
        "samples": [{"": "added", "note": "a|b\nc", "tax": None}],
    }
    text = diff_markdown([one], against="main", versions={"silver.orders": 7})

    assert "| `gold.spend` | changed | 1,000 → 1,001 | 1 | 0 | ? | amount: 3, +tax, -note |" in text
    assert r"| added | a\|b c | NULL |" in text
    assert "silver.orders@7" in text
    assert "No gold view changes." in diff_markdown([], against="main", versions={})
