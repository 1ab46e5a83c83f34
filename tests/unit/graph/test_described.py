from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.errors import ProblemsError
from spark_jobs.graph.compile import compile_project
from spark_jobs.graph.errors import UnknownColumnError
from tests.golden.declaration_cases import RIGHT, write_project

VIEW = """\
/* gold
description: Spend per user.
owner: analytics
refresh: bulk
columns:
  {column}: By header.
*/
SELECT o.user_id, o.amount AS paid, SUM(o.amount) AS spend -- by comment
FROM silver.orders AS o
GROUP BY ALL
"""
ORDERS = RIGHT["sources/orders.yml"].replace(
    "amount: DECIMAL(12,2)", 'amount: {type: "DECIMAL(12,2)", description: By source.}'
)


def test_header_then_comment_then_the_column_that_is_copied(tmp_path: Path):
    files = {"sql/gold/spend.sql": VIEW.format(column="user_id"), "sources/orders.yml": ORDERS}
    entry = compile_project(write_project(tmp_path, files)).gold["spend"]

    assert [column.description for column in entry.columns] == [
        "By header.",
        "By source.",
        "by comment",
    ]


@pytest.mark.parametrize("layer", ["gold", "silver"])
def test_a_column_that_is_not_there_is_named_with_its_place(tmp_path: Path, layer: str):
    silver = RIGHT["sql/silver/orders.sql"].replace("*/", "columns:\n  amuont: Paid.\n*/")
    gold = VIEW.format(column="spned")
    file, text = {"gold": ("spend", gold), "silver": ("orders", silver)}[layer]
    project = write_project(tmp_path, {f"sql/{layer}/{file}.sql": text})

    with pytest.raises(ProblemsError) as refused:
        compile_project(project)
    (problem,) = refused.value.problems
    assert isinstance(problem, UnknownColumnError)
    assert problem.column in {"spned", "amuont"}
    assert problem.hint in {'Did you mean "spend"?', 'Did you mean "amount"?'}
    line = text.splitlines().index(
        f"  {problem.column}: {'By header' if layer == 'gold' else 'Paid'}."
    )
    assert problem.location is not None
    assert (problem.location.file, problem.location.line) == (f"sql/{layer}/{file}.sql", line + 1)


def test_a_repeated_word_of_the_tree_is_listed_once(tmp_path: Path):
    view = VIEW.format(column="spend").replace("o.user_id,", "o.user_id, -- who\n")
    entry = compile_project(write_project(tmp_path, {"sql/gold/spend.sql": view})).gold["spend"]

    assert entry.columns[0].description == "who"
