"""Personal data is marked where it is declared and in everything that is computed from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.errors import ProblemsError
from spark_jobs.graph.compile import compile_project
from spark_jobs.graph.errors import UnknownColumnError
from spark_jobs.graph.personal import personal_columns
from tests.golden.declaration_cases import RIGHT, write_project

SOURCE = RIGHT["sources/orders.yml"].replace(
    "amount: DECIMAL(12,2)", 'amount: {type: "DECIMAL(12,2)", pii: true}'
)
VIEW = """\
/* gold
description: Spend per user.
owner: analytics
refresh: bulk
{more}
*/
SELECT o.user_id, o.amount AS Paid, count(o.amount) AS orders
FROM silver.orders AS o
GROUP BY ALL
"""
ABOVE = """\
/* gold
description: What one sees above.
owner: analytics
refresh: bulk
*/
WITH doubled AS (SELECT 2 * s.paid AS twice, s.user_id FROM gold.spend AS s)
SELECT d.user_id, d.twice + 1 AS more, 1 AS one FROM doubled AS d WHERE d.twice > 0
"""


def compiled(folder: Path, more: str = ""):
    files = {
        "sources/orders.yml": SOURCE,
        "sql/gold/spend.sql": VIEW.format(more=more),
        "sql/gold/above.sql": ABOVE,
    }
    return compile_project(write_project(folder, files))


def test_what_is_computed_from_personal_data_is_personal(tmp_path: Path):
    manifest = compiled(tmp_path)
    assert personal_columns(manifest.silver["orders"]) == {"amount"}
    assert personal_columns(manifest.gold["spend"]) == {"paid", "orders"}
    assert personal_columns(manifest.gold["above"]) == {"more"}


def test_a_record_with_a_personal_field_is_personal_as_a_whole(tmp_path: Path):
    source = compiled(tmp_path).sources["orders"]
    assert personal_columns(source) == {"key", "value", "headers"}
    unmarked = tuple(one.model_copy(update={"pii": False}) for one in source.columns)
    assert not personal_columns(source.model_copy(update={"columns": unmarked}))


def test_a_header_adds_columns_and_clears_them_for_those_above_too(tmp_path: Path):
    manifest = compiled(tmp_path, "pii: USER_ID\nnot_pii: [paid]")
    assert personal_columns(manifest.gold["spend"]) == {"user_id", "orders"}
    assert personal_columns(manifest.gold["above"]) == {"user_id"}


@pytest.mark.parametrize("key", ["pii", "not_pii"])
def test_a_column_that_is_not_there_is_named_with_its_place(tmp_path: Path, key: str):
    with pytest.raises(ProblemsError) as refused:
        compiled(tmp_path, f"{key}: [user_id, piad]")
    (problem,) = refused.value.problems
    assert isinstance(problem, UnknownColumnError)
    assert problem.column == "piad"
    assert problem.location is not None
    assert (problem.location.file, problem.location.line) == ("sql/gold/spend.sql", 5)
