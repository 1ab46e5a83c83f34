"""Runs maintenance programs in DuckDB, thousands a minute: the rules are the same on any engine."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import duckdb
from sqlglot import exp

from spark_jobs.graph.canonical import canonical_query
from spark_jobs.graph.dialect import parse, to_sql
from spark_jobs.graph.maintenance.delta import StateUpdate
from spark_jobs.graph.maintenance.program import Program, derive
from spark_jobs.graph.maintenance.query import build
from spark_jobs.graph.maintenance.relation import When
from spark_jobs.graph.maintenance.states import Cutter, State
from spark_jobs.graph.parsing import SqlText
from spark_jobs.graph.resolve import resolve
from spark_jobs.names import TableName
from tests.properties.grammar import TABLES

Row = tuple[object, ...]
Bag = Counter[Row]


@dataclass(frozen=True)
class InDuckDb:
    """Names of the relations that a program reads."""

    changed: frozenset[str]
    in_parts: bool = False
    all_large: bool = False

    def large(self, table: str) -> bool:
        """Every table or none."""
        return self.all_large

    def part_types(self, table: str) -> Mapping[str, str] | None:
        """All sums in the grammar are of whole numbers."""
        in_parts = self.in_parts and table.startswith("state.")
        return defaultdict(lambda: "bigint") if in_parts else None

    def content(self, table: str, when: When) -> exp.Table:
        return exp.to_table(f"{table.replace('.', '_')}_{when}")

    def change(self, table: str) -> exp.Table:
        return exp.to_table(f"{table.replace('.', '_')}_change")

    def published(self) -> exp.Table:
        return exp.to_table("published")


def canonical(sql: str) -> str:
    """A query as the compiled project holds it."""
    tree = parse(sql)
    schemas = {
        TableName.parse(table): dict.fromkeys(columns, "int") for table, columns in TABLES.items()
    }
    resolved = resolve(tree, schemas, SqlText("query", sql), "query")  # type: ignore[arg-type]
    assert not resolved.problems, (sql, resolved.problems)
    return to_sql(canonical_query(tree, resolved.tree))  # type: ignore[arg-type]


def random_bag(rng: random.Random, arity: int, most: int = 8) -> Bag:
    """Few rows of few values, with NULLs and duplicates; sometimes none."""
    values = [0, 1, 2, 3, None]
    count = rng.choice((0, 1, 3, most))
    return Counter(tuple(rng.choice(values) for _ in range(arity)) for _ in range(count))


def random_change(rng: random.Random, before: Bag, arity: int) -> Bag:
    """A signed change that takes away no more than there is."""
    change = random_bag(rng, arity, most=4) if rng.random() < 0.8 else Counter()
    for row, count in before.items():
        if rng.random() < 0.3:
            change[row] -= rng.randint(1, count)
    return Counter({row: count for row, count in change.items() if count})


class Engine:
    """A DuckDB database with the tables before and after a change."""

    def __init__(self) -> None:
        self.connection = duckdb.connect(config={"threads": "1"})
        # Its rewriting of unions and outer joins over the same subquery loses rows.
        self.connection.execute("PRAGMA disable_optimizer")
        self.connection.execute("CREATE MACRO sequence(a, b) AS generate_series(a, b)")

    def load(self, name: str, columns: tuple[str, ...], rows: list[Row]) -> None:
        spec = ", ".join(f"{column} INTEGER" for column in columns)
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} ({spec})")
        if rows:
            marks = ", ".join("?" for _ in columns)
            self.connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)

    def rows(self, query: exp.Expr) -> list[Row]:
        return self.connection.execute(query.sql(dialect="duckdb")).fetchall()

    def create(self, name: str, query: exp.Expr) -> None:
        self.connection.execute(
            f"CREATE OR REPLACE TEMP TABLE {name} AS {query.sql(dialect='duckdb')}"
        )


def content_of(query: str, when: When) -> exp.Expr:
    """The query over the tables before or after the change."""
    tree = parse(query)
    for table in list(tree.find_all(exp.Table)):
        if table.db:
            new = exp.to_table(f"{table.db}_{table.name}_{when}")
            new.set("alias", table.args.get("alias"))
            table.replace(new)
    return tree


def load_history(engine: Engine, rng: random.Random, tables: frozenset[str]) -> frozenset[str]:
    """Fill the tables before and after a random change; returns those that changed."""
    changed = set()
    for table, columns in TABLES.items():
        if table not in tables:
            continue
        before = random_bag(rng, len(columns))
        change = random_change(rng, before, len(columns)) if rng.random() < 0.75 else Counter()
        after = Counter(before)
        after.update(change)
        name = table.replace(".", "_")
        engine.load(f"{name}_old", columns, list(before.elements()))
        engine.load(f"{name}_new", columns, list(after.elements()))
        weighted: list[Row] = [(*row, count) for row, count in change.items()]
        engine.load(f"{name}_change", (*columns, "__w"), weighted)
        if change:
            changed.add(table)
    return frozenset(changed)


def difference(engine: Engine, sql: str, rng: random.Random, *, kept: float = 0.5) -> str | None:
    """Maintain a query through a random change; what is wrong with the result, or None.

    Args:
        engine: where to run it.
        sql: the query.
        rng: makes the tables and the change.
        kept: how often groups are kept where they can be.
    """
    query = canonical(sql)
    root, outputs = build(query)
    cutter = Cutter({table: dict.fromkeys(columns, "int") for table, columns in TABLES.items()})
    if rng.random() < kept:
        root = cutter.cut(root)
    tables = frozenset(f"{one.db}.{one.name}" for one in parse(query).find_all(exp.Table) if one.db)
    changed = load_history(engine, rng, tables)
    old, new = content_of(query, When.OLD), content_of(query, When.NEW)
    engine.create("published", old)
    in_parts, all_large = rng.random() < 0.5, rng.random() < 0.5
    relations = InDuckDb(changed, in_parts, all_large)
    program = derive((root, outputs), relations, {}, states=cutter.states)
    expected = Counter(engine.rows(new))
    actual = Counter(engine.rows(exp.select("*").from_("published")))
    actual.update(change_of(engine, program, in_parts=in_parts))
    wrong = {row: count for row, count in actual.items() if count != expected.get(row, 0)}
    wrong |= {row: -count for row, count in expected.items() if row not in actual and count}
    if wrong:
        return f"{sql}\nchanged {sorted(changed)}\n{wrong}"
    return None


def parts_of(state: State, whole: exp.Select) -> exp.Query:
    """Each group in three parts that add up to it."""
    negative = exp.select(
        *state.keys,
        *(f"-{name} AS {name}" for name in state.columns if name not in state.keys),
    ).from_(whole.subquery("t"))
    return exp.union(exp.union(whole, whole.copy(), distinct=False), negative, distinct=False)


def change_of(engine: Engine, program: Program, *, in_parts: bool = False) -> Bag:
    """What the program says that changes; kept groups may lie in parts, and be appended to."""
    for step in program.steps:
        if isinstance(step, StateUpdate):
            name = step.state.table.replace(".", "_")
            engine.create(f"{name}_old", step.content)
            old = exp.select("*").from_(f"{name}_old")
            if in_parts:
                engine.create(f"{name}_old", parts_of(step.state, old))
                new = exp.union(old, step.change, distinct=False) if step.change else old
                engine.create(f"{name}_new", new)
            else:
                engine.create(f"{name}_new", step.update or old)
        else:
            engine.create(step.name, step.query)
    if program.change is None:
        return Counter()
    rows = engine.rows(program.change)
    found = Counter({row[:-1]: int(str(row[-1])) for row in rows})
    assert len(found) == len(rows), "a row comes twice in one change"
    return found
