"""The texts of a view that Spark is asked about."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.graph.compile import read_project
from spark_jobs.graph.no_rows import ViewsOverNoRows
from tests.unit.graph.mutants import HEADER

_EMPTY = "(SELECT CAST(NULL AS INT) AS `a`, CAST(NULL AS STRING) AS `b c` WHERE FALSE) AS t"


@pytest.mark.parametrize(
    ("select", "texts"),
    [
        (
            "SELECT T.`b c` AS b FROM bronze.t WHERE a > 1 /* why */",
            [
                f"SELECT T.`b c` AS b FROM {_EMPTY} WHERE a > 1          ",
                f"SELECT t.`b c` AS b FROM {_EMPTY} WHERE t.a > 1",
            ],
        ),
        # No text but the author's is run for a view that is computed in full.
        (
            "SELECT `b c` AS b, POSITIVE(RANK() OVER (ORDER BY a)) AS r FROM bronze.t",
            [f"SELECT `b c` AS b, POSITIVE(RANK() OVER (ORDER BY a)) AS r FROM {_EMPTY}"],
        ),
    ],
)
def test_spark_is_asked_about_what_runs(select: str, texts: list[str], tmp_path: Path) -> None:
    (tmp_path / "sources").mkdir()
    (tmp_path / "sql/gold").mkdir(parents=True)
    (tmp_path / "sources/t.yml").write_text("format: delta\nlocation: /lake/t\n")
    (tmp_path / "sql/gold/v.sql").write_text(HEADER + select + "\n")
    columns = {"a": "int", "b c": "string", "unread": "int"}
    manifest, problems = read_project(tmp_path, delta_schema=lambda _: columns)
    assert not problems
    assert ViewsOverNoRows(manifest).texts("v") == texts
