"""Broken views: every shipped view and TPC-H query, with random mistakes in it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sqlglot import exp
from sqlglot.errors import SqlglotError

from benchmarks.tpch.project import NAMES, definition
from spark_jobs.errors import LakehouseError
from spark_jobs.graph.compile import read_project
from spark_jobs.graph.dialect import parse, to_sql
from spark_jobs.graph.sql import table_nodes
from spark_jobs.graph.typed_source import typed_columns
from spark_jobs.settings import REPOSITORY

Columns = dict[str, str]
HEADER = "/* gold\ndescription: Broken.\nowner: fuzz\nrefresh: bulk\n*/\n"
TPCH = {
    "customer": "custkey name address nationkey phone acctbal mktsegment comment",
    "lineitem": "orderkey partkey suppkey linenumber quantity extendedprice discount tax "
    "returnflag linestatus shipdate commitdate receiptdate shipinstruct shipmode comment",
    "nation": "nationkey name regionkey comment",
    "orders": "orderkey custkey orderstatus totalprice orderdate orderpriority clerk "
    "shippriority comment",
    "part": "partkey name mfgr brand type size container retailprice comment",
    "partsupp": "partkey suppkey availqty supplycost comment",
    "region": "regionkey name comment",
    "supplier": "suppkey name address nationkey phone acctbal comment",
}
TYPES = (
    "INT",
    "STRING",
    "DECIMAL(12, 2)",
    "TIMESTAMP",
    "ARRAY<INT>",
    "STRUCT<a: INT>",
    "MAP<INT, INT>",
)
VALUES = (
    "NULL",
    "'x'",
    "1e400",
    "9" * 60,
    "DATE '2026-13-45'",
    "TRUE",
    "ARRAY()",
    "INTERVAL 1 DAY",
)
WORDS = ("a", "k", "spend", "window", "`a b`", "__x", "x" * 300, "ünïcode", "silver", "*")
# To bring tokens together that no tree holds.
FRAGMENTS = (
    "(",
    ")",
    ",",
    "SELECT",
    "FROM",
    "JOIN",
    "OVER",
    "ORDER BY 9",
    "'",
    "*",
    "/*",
    "--",
    ";",
)


@dataclass(frozen=True)
class View:
    """A right view: its SELECT over tables of the layer bronze, and their columns."""

    name: str
    sql: str
    tables: Mapping[str, Columns]


class MissingTableError(LakehouseError):
    """There is no table at a source's location."""

    condition = "TABLE_MISSING"
    problem: str
    primary = "{problem}"


def views() -> list[View]:
    """The shipped views and the queries of TPC-H."""
    manifest, problems = read_project(REPOSITORY)
    assert not problems
    known = {str(one.table_name): typed_columns(one) for one in manifest.sources.values()}
    for entries in (manifest.silver, manifest.gold):
        known |= {
            str(one.table_name): {column.name: column.type for column in one.columns}
            for one in entries.values()
        }
    shipped = [_over_bronze(name, one.sql, known) for name, one in manifest.gold.items()]
    tables = {f"bronze.{name}": _tpch_columns(name) for name in TPCH}
    texts = {name: definition(name, scale=1).partition("*/\n")[2] for name in NAMES}
    return shipped + [_over_bronze(name, text, tables) for name, text in texts.items()]


def _tpch_columns(table: str) -> Columns:
    prefix = "ps" if table == "partsupp" else table[0]
    return {f"{prefix}_{one}": _tpch_type(one) for one in TPCH[table].split()}


def _tpch_type(column: str) -> str:
    if column.endswith("key"):
        return "bigint"
    if column.endswith("date"):
        return "date"
    if column in {"linenumber", "size", "availqty", "shippriority"}:
        return "int"
    numbers = ("price", "cost", "bal", "discount", "tax", "quantity")
    return "decimal(15,2)" if column.endswith(numbers) else "string"


def _over_bronze(name: str, sql: str, known: Mapping[str, Columns]) -> View:
    tree = parse(sql)
    tables: dict[str, Columns] = {}
    for node in table_nodes(tree):
        tables[node.name] = known[f"{node.db}.{node.name}".lower()]
        node.set("db", exp.to_identifier("bronze"))
    return View(name, to_sql(tree, pretty=True), tables)


def write_tables(project: Path, found: list[View]) -> None:
    """The sources of all views: Delta tables, which are asked for their columns."""
    (project / "sources").mkdir(parents=True)
    (project / "sql/gold").mkdir(parents=True)
    for name in {name for one in found for name in one.tables}:
        source = f"format: delta\nlocation: /lake/{name}\n"
        (project / f"sources/{name}.yml").write_text(source)


def validated(project: Path, view: View, sql: str, *, missing: set[str]) -> list[LakehouseError]:
    """What ``tidemark validate`` says of a text in place of the view's, in its own project."""
    folder = project / view.name
    if not folder.exists():
        write_tables(folder, [view])
    (folder / "sql/gold/broken.sql").write_text(HEADER + sql + "\n", "utf-8", "replace")

    def columns(location: str) -> Columns:
        table = location.rpartition("/")[2]
        if table in missing:
            raise MissingTableError(f"no table lies at {location!r}")
        return view.tables[table]

    return read_project(folder, delta_schema=columns)[1]


def mutant(view: View, chance: random.Random) -> tuple[str, set[str]]:
    """A text with one to three mistakes, and the tables that are missing."""
    tree = parse(view.sql)
    for _ in range(chance.randint(1, 3)):
        nodes = [one for one in tree.walk() if one is not tree]
        if nodes:
            chance.choice(MISTAKES)(chance.choice(nodes), nodes, chance)
    try:
        text = to_sql(tree, pretty=True)
    except (SqlglotError, ValueError, TypeError, AttributeError, LookupError, RecursionError):
        # No text says what is left of the tree: break the text instead.
        text = _torn(view.sql, chance)
    if chance.random() < 0.1:
        text = _torn(text, chance)
    lost = set(chance.sample(sorted(view.tables), 1)) if chance.random() < 0.3 else set()
    return text, set(view.tables) if chance.random() < 0.05 else lost


def _drop(node: exp.Expr, nodes: list[exp.Expr], chance: random.Random) -> None:
    node.pop()


def _swap(node: exp.Expr, nodes: list[exp.Expr], chance: random.Random) -> None:
    other = chance.choice(nodes).copy()
    node.replace(other)


def _rename(node: exp.Expr, nodes: list[exp.Expr], chance: random.Random) -> None:
    names = [one for one in nodes if isinstance(one, exp.Identifier)]
    if names:
        known = [one.name for one in names]
        chance.choice(names).set("this", chance.choice([*known, *known, *WORDS]))


def _retype(node: exp.Expr, nodes: list[exp.Expr], chance: random.Random) -> None:
    kinds = [one for one in nodes if isinstance(one, exp.Literal | exp.Column)]
    if not kinds:
        return
    chosen = chance.choice(kinds)
    if chance.random() < 0.5:
        chosen.replace(parse(f"SELECT {chance.choice(VALUES)}").selects[0])
    else:
        text = f"SELECT CAST(NULL AS {chance.choice(TYPES)})"
        chosen.replace(parse(text).selects[0])


def _star(node: exp.Expr, nodes: list[exp.Expr], chance: random.Random) -> None:
    columns = [one for one in nodes if isinstance(one, exp.Column)]
    if columns:
        chance.choice(columns).replace(exp.Star())


def _plain(node: exp.Expr, nodes: list[exp.Expr], chance: random.Random) -> None:
    """Take the relation away from a column."""
    for one in chance.sample(nodes, len(nodes) // 2):
        if isinstance(one, exp.Column):
            one.set("table", None)


MISTAKES: tuple[Callable[[exp.Expr, list[exp.Expr], random.Random], None], ...] = (
    *(_drop, _swap, _rename, _retype, _star, _plain),
)


def _torn(sql: str, chance: random.Random) -> str:
    start, end = sorted(chance.sample(range(len(sql)), 2))
    return sql[:start] + chance.choice(FRAGMENTS) + sql[min(end, start + 20) :]


def mutants(found: list[View], seed: int) -> Iterator[tuple[View, str, set[str]]]:
    """Without end; the same for the same seed."""
    chance = random.Random(seed)
    while True:
        view = chance.choice(found)
        yield view, *mutant(view, chance)
