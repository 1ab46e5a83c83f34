"""Variables, macros and ephemeral views: what is put in, and what is refused where."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spark_jobs.errors import LakehouseError, ProblemsError
from spark_jobs.graph.compile import compile_project, read_project
from spark_jobs.graph.reuse import Value, literal
from spark_jobs.settings import REPOSITORY, load_settings
from spark_jobs.storage.compiled import compiled

SOURCE = """\
format: delta
location: data/orders
columns:
  order_id: BIGINT
  user_id: BIGINT
  amount: DECIMAL(12,2)
  tax: DECIMAL(12,2)
  status: STRING
  day: DATE
"""
# What the page's example reads.
PAGE = {
    "sources/orders.yml": SOURCE.replace("  day: DATE\n", "").replace(
        "format: delta\nlocation: data/orders\n",
        "format: debezium\ntopic: shop.public.orders\ntable: public.orders\nkeys: [order_id]\n",
    ),
    "sql/silver/orders.sql": "/* silver\ndescription: d\n*/\n"
    "SELECT o.order_id, o.user_id, o.amount, o.tax, o.status FROM bronze.orders AS o",
}
HEAD = "/* gold\ndescription: d\nowner: o\nrefresh: bulk\n*/\n"


def project(folder: Path, **files: str) -> Path:
    """A project; the keys are paths with __ for / and without the ending."""
    for name, text in {"sources__orders": SOURCE, **files}.items():
        ending = "yml" if name.startswith("sources") else "sql"
        path = folder / f"{name.replace('__', '/')}.{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HEAD + text if "gold" in name else text)
    return folder


def query(folder: Path, view: str = "v", **variables: Value) -> str:
    return " ".join(compile_project(folder, variables=variables).gold[view].sql.split())


def problems(folder: Path, **variables: Value) -> list[LakehouseError]:
    return read_project(folder, variables=variables)[1]


def test_a_variable_is_a_value(tmp_path: Path) -> None:
    sql = "SELECT o.order_id FROM bronze.orders AS o WHERE o.amount > @least AND o.status = @state"
    folder = project(tmp_path, sql__gold__v=sql)
    made = query(folder, least=-5, state="it's; DROP TABLE x --")
    assert made == (
        "SELECT o.order_id FROM bronze.orders AS o "
        "WHERE o.amount > (-5) AND o.status = 'it\\'s; DROP TABLE x --'"
    )
    assert query(folder, least=1.5, state="a") != made


@pytest.mark.parametrize(
    ("value", "text"), [(True, "TRUE"), (False, "FALSE"), (3, "3"), ("a\\", "'a\\\\'")]
)
def test_values(value: Value, text: str) -> None:
    assert literal(value) == text


def test_a_macro_is_its_expression_with_what_it_is_given(tmp_path: Path) -> None:
    folder = project(
        tmp_path,
        sql__macros__net="-- Without tax.\nCREATE MACRO net(amount, tax) AS\n"
        "  amount - COALESCE(tax, 0)\n",
        sql__macros__doubled="CREATE MACRO doubled(x) AS net(x, 0) * 2",
        sql__gold__v="SELECT o.order_id, net(o.amount + 1, o.tax) AS net, "
        "doubled(net(o.amount, 0)) AS twice FROM bronze.orders AS o",
    )
    assert query(folder) == (
        "SELECT o.order_id, ((o.amount + 1) - COALESCE((o.tax), 0)) AS net, "
        "((((((o.amount) - COALESCE((0), 0)))) - COALESCE((0), 0)) * 2) AS twice "
        "FROM bronze.orders AS o"
    )


def test_precedence_is_that_of_a_call(tmp_path: Path) -> None:
    folder = project(
        tmp_path,
        sql__macros__plus="CREATE MACRO plus(a, b) AS a + b",
        sql__gold__v="SELECT o.order_id, plus(1, 2) * plus(o.amount, 3) AS n "
        "FROM bronze.orders AS o",
    )
    assert "((1) + (2)) * ((o.amount) + (3))" in query(folder)


def test_a_field_of_a_parameters_name_is_left_alone(tmp_path: Path) -> None:
    folder = project(
        tmp_path,
        sql__macros__part="CREATE MACRO part(day) AS CONCAT('day', CAST(day AS STRING))",
        sql__gold__v="SELECT o.order_id, part(o.day) AS p FROM bronze.orders AS o",
    )
    assert "CONCAT('day', CAST((o.day) AS STRING))" in query(folder)


def test_an_ephemeral_view_is_a_subquery(tmp_path: Path) -> None:
    folder = project(
        tmp_path,
        sql__ephemeral__paid="SELECT o.user_id, o.amount -- of those\nFROM bronze.orders AS o\n"
        "WHERE o.status = @state;",
        sql__gold__v="SELECT paid.user_id, SUM(paid.amount) AS total\nFROM ephemeral.paid\n"
        "GROUP BY paid.user_id",
        sql__gold__w="SELECT p.user_id FROM ephemeral.paid AS p JOIN ephemeral.paid q "
        "ON p.user_id = q.user_id WHERE p.amount > q.amount",
    )
    manifest = compile_project(folder, variables={"state": "paid"})
    view = manifest.gold["v"]
    assert view.inputs == ("bronze.orders",)
    assert view.maintenance is not None, "it is followed as if it were written out"
    assert "(SELECT o.user_id, o.amount" in view.sql
    assert ") AS paid\nGROUP BY" in view.sql
    assert manifest.gold["w"].sql.count("(SELECT") == 2


def test_a_changed_macro_changes_the_fingerprint_of_its_users(tmp_path: Path) -> None:
    files = {
        "sql__gold__v": "SELECT o.order_id, net(o.amount) AS n FROM bronze.orders AS o",
        "sql__gold__w": "SELECT o.order_id FROM bronze.orders AS o",
    }
    one = compile_project(
        project(tmp_path / "one", sql__macros__net="CREATE MACRO net(a) AS a - 1", **files)
    ).gold
    other = compile_project(
        project(tmp_path / "other", sql__macros__net="CREATE MACRO net(a) AS a - 2", **files)
    ).gold
    assert one["v"].fingerprint != other["v"].fingerprint
    assert one["w"].fingerprint == other["w"].fingerprint


def test_comments_and_quotes_use_nothing(tmp_path: Path) -> None:
    folder = project(
        tmp_path,
        sql__macros__net="CREATE MACRO net(a) AS a - 1",
        sql__gold__v="SELECT o.order_id, 'net(1) @x ephemeral.y' AS n -- net(1), @x\n"
        "FROM bronze.orders AS o",
    )
    assert "'net(1) @x ephemeral.y'" in query(folder)


def test_places_behind_what_is_put_in_stay(tmp_path: Path) -> None:
    folder = project(
        tmp_path,
        sql__macros__net="CREATE MACRO net(a, b) AS\n  a\n  - b",
        sql__gold__v="SELECT\n  net(\n    o.amount,\n    o.tax\n  ) AS n,\n  o.nothing\n"
        "FROM bronze.orders AS o",
    )
    [problem] = problems(folder)
    assert problem.condition == "UNKNOWN_COLUMN"
    assert problem.location is not None
    assert (problem.location.file, problem.location.line) == ("sql/gold/v.sql", 11)


WRONG = {
    "an unknown variable": (
        {"sql__gold__v": "SELECT o.order_id FROM bronze.orders AS o\nWHERE o.amount > @leest"},
        ("UNKNOWN_VARIABLE", "sql/gold/v.sql", 7, 18),
    ),
    "an unknown ephemeral view": (
        {"sql__gold__v": "SELECT p.order_id FROM ephemeral.payd AS p"},
        ("UNKNOWN_EPHEMERAL_VIEW", "sql/gold/v.sql", 6, 24),
    ),
    "too few arguments": (
        {
            "sql__macros__net": "CREATE MACRO net(a, b) AS a - b",
            "sql__gold__v": "SELECT o.order_id, net(o.amount) AS n FROM bronze.orders AS o",
        },
        ("MACRO_ARGUMENTS", "sql/gold/v.sql", 6, 20),
    ),
    "an argument without text": (
        {
            "sql__macros__net": "CREATE MACRO net(a, b) AS a - b",
            "sql__gold__v": "SELECT o.order_id, net(o.amount,) AS n FROM bronze.orders AS o",
        },
        ("MACRO_ARGUMENTS", "sql/gold/v.sql", 6, 20),
    ),
    "a macro that uses itself": (
        {
            "sql__macros__a": "CREATE MACRO a(x) AS b(x)",
            "sql__macros__b": "CREATE MACRO b(x) AS a(x)",
            "sql__gold__v": "SELECT o.order_id FROM bronze.orders AS o",
        },
        ("REUSE_CYCLE", "sql/macros/a.sql", 1, 22),
    ),
    "an ephemeral view that reads itself": (
        {
            "sql__ephemeral__e": "SELECT e.order_id FROM ephemeral.e AS e",
            "sql__gold__v": "SELECT o.order_id FROM bronze.orders AS o",
        },
        ("REUSE_CYCLE", "sql/ephemeral/e.sql", 1, 24),
    ),
    "no macro": (
        {
            "sql__macros__net": "SELECT 1",
            "sql__gold__v": "SELECT o.order_id FROM bronze.orders AS o",
        },
        ("MACRO", "sql/macros/net.sql", 1, 1),
    ),
    "a macro of another name": (
        {
            "sql__macros__net": "CREATE MACRO gross(a) AS a",
            "sql__gold__v": "SELECT o.order_id FROM bronze.orders AS o",
        },
        ("MACRO", "sql/macros/net.sql", 1, 14),
    ),
    "a macro with the name of a function": (
        {
            "sql__macros__abs": "CREATE MACRO abs(a) AS a",
            "sql__gold__v": "SELECT o.order_id FROM bronze.orders AS o",
        },
        ("MACRO", "sql/macros/abs.sql", 1, 14),
    ),
    "a macro over a column": (
        {
            "sql__macros__net": "CREATE MACRO net(a) AS\n  a - tax",
            "sql__gold__v": "SELECT o.order_id FROM bronze.orders AS o",
        },
        ("MACRO", "sql/macros/net.sql", 2, 3),
    ),
    "a statement for a macro": (
        {
            "sql__macros__net": "CREATE MACRO net(a) AS SELECT a",
            "sql__gold__v": "SELECT o.order_id FROM bronze.orders AS o",
        },
        ("MACRO", "sql/macros/net.sql", 1, 24),
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_errors_in_macros_have_a_location(tmp_path: Path, wrong: str) -> None:
    files, (condition, file, line, column) = WRONG[wrong]
    found = problems(project(tmp_path, **files), least=1)
    first = next(one for one in found if one.condition == condition)
    assert first.location is not None
    assert (first.location.file, first.location.line, first.location.column) == (file, line, column)


def test_a_cycle_is_reported_once_whoever_uses_it(tmp_path: Path) -> None:
    folder = project(
        tmp_path,
        sql__macros__a="CREATE MACRO a(x) AS b(x)",
        sql__macros__b="CREATE MACRO b(x) AS c(x)",
        sql__macros__c="CREATE MACRO c(x) AS a(x)",
        sql__gold__v="SELECT a(o.order_id) AS n FROM bronze.orders AS o",
        sql__gold__w="SELECT b(o.order_id) AS n FROM bronze.orders AS o",
    )
    [problem] = problems(folder)
    assert problem.condition == "REUSE_CYCLE"
    assert "macro a -> macro b -> macro c -> macro a uses itself" in str(problem)


def test_a_misspelt_variable_is_reported_with_a_suggestion(tmp_path: Path) -> None:
    folder = project(
        tmp_path, sql__gold__v="SELECT o.order_id, @leest AS n FROM bronze.orders AS o"
    )
    with pytest.raises(ProblemsError, match=r"Did you mean .*least"):
        compile_project(folder, variables={"least": 1})


def test_macros_within_macros_do_not_grow_without_end(tmp_path: Path) -> None:
    files = {"sql__macros__m0": "CREATE MACRO m0(x) AS x + x + x + x + x + x + x + x"}
    for number in range(1, 12):
        body = " + ".join([f"m{number - 1}(x)"] * 8)
        files[f"sql__macros__m{number}"] = f"CREATE MACRO m{number}(x) AS {body}"
    files["sql__gold__v"] = "SELECT o.order_id, m11(o.amount) AS n FROM bronze.orders AS o"
    found = {one.condition for one in problems(project(tmp_path, **files))}
    assert "EXPANSION_TOO_LARGE" in found


def test_nothing_of_an_unclosed_call_is_lost(tmp_path: Path) -> None:
    folder = project(
        tmp_path,
        sql__macros__net="CREATE MACRO net(a) AS a - 1",
        sql__gold__v="SELECT o.order_id, net(o.amount AS n FROM bronze.orders AS o",
    )
    assert problems(folder)


def test_the_example_of_the_page_is_followed_incrementally(tmp_path: Path) -> None:
    page = (REPOSITORY / "docs/reuse.md").read_text("utf-8")
    files = dict(re.findall(r"^```\w+ file=(\S+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    for name, text in {**files, **PAGE}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    settings = load_settings(tmp_path, state_dir=tmp_path / "state")
    view = compiled(settings).gold["revenue_by_user"]
    assert view.inputs == ("silver.orders",)
    assert view.maintenance is not None
    assert "o.status = 'paid'" in view.sql
    assert "> 0.5" in view.sql


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"sql__macros__m": "CREATE MACRO m(a) AS a +"}, "its body is not an expression"),
        ({"sql__ephemeral__e": "SELECT FROM WHERE"}, "expected table name but got 'WHERE'"),
    ],
)
def test_messages_name_no_classes_of_the_parser(
    tmp_path: Path, files: dict[str, str], words: str
) -> None:
    folder = project(tmp_path, **files, sql__gold__v="SELECT o.order_id FROM bronze.orders AS o")
    [problem] = problems(folder)

    assert words in problem.primary
    assert "sqlglot" not in problem.primary
    assert "Token" not in problem.primary
