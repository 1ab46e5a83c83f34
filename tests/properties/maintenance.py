"""A view over changing inputs, maintained incrementally and recomputed for comparison."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sqlglot import exp

from spark_jobs.graph.canonical import canonical_query
from spark_jobs.graph.clock import freeze_clock
from spark_jobs.graph.dialect import parse
from spark_jobs.graph.functions import reads_clock
from spark_jobs.graph.last_step import DeleteInsert
from spark_jobs.graph.maintained_query import MaintainedQuery, maintained_query
from spark_jobs.graph.maintenance.delta import StateRead, StateUpdate
from spark_jobs.graph.maintenance.program import Program, derive
from spark_jobs.graph.maintenance.query import build
from spark_jobs.graph.maintenance.relation import When
from spark_jobs.graph.maintenance.states import Cutter, State
from spark_jobs.graph.parsing import SqlText
from spark_jobs.graph.resolve import resolve
from spark_jobs.names import TableName
from tests.properties.engine import Engine, by_spark
from tests.properties.tables import TYPES, Multiset, Row, Types

Content = Mapping[str, Sequence[Row]]
# A change feed: rows with weights, which may cancel out.
Feed = Mapping[str, Sequence[Row]]
NOON = datetime(2026, 1, 3, 12, tzinfo=UTC)
# A column that was added to a table after the view was written; the view does not read it.
LATER = "later"


@dataclass(frozen=True)
class InDuckDb:
    """Names of the relations that a program reads in DuckDB."""

    changed: frozenset[str]
    parts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    all_large: bool = False

    def large(self, table: str) -> bool:
        """Every table or none."""
        return self.all_large

    def part_types(self, table: str) -> Mapping[str, str] | None:
        """The types of groups that are stored in parts."""
        return self.parts.get(table)

    def content(self, table: str, when: When) -> exp.Table:
        return exp.to_table(f"{table.replace('.', '_')}_{when}")

    def change(self, table: str) -> exp.Table:
        return exp.to_table(f"{table.replace('.', '_')}_change")

    def published(self) -> exp.Table:
        return exp.to_table("published")


def canonical(sql: str) -> str:
    """A query in the form of the compiled project."""
    return compiled(sql, TYPES).text


def compiled(sql: str, types: Mapping[str, Types]) -> MaintainedQuery:
    """A query as a project compiles it."""
    tree = parse(sql)
    schemas = {TableName.parse(table): dict(columns) for table, columns in TYPES.items()}
    resolved = resolve(tree, schemas, SqlText("query", sql), "query")  # type: ignore[arg-type]
    assert not resolved.problems, (sql, resolved.problems)
    return maintained_query(canonical_query(tree, resolved.tree), types=types)  # type: ignore[arg-type]


def content_of(query: str, when: When, clock: datetime = NOON) -> exp.Expr:
    """The query over the tables before or after the change, at a given time."""
    tree = by_spark(parse(freeze_clock(query, clock)))
    for table in list(tree.find_all(exp.Table)):
        if table.db:
            new = exp.to_table(f"{table.db}_{table.name}_{when}")
            new.set("alias", table.args.get("alias"))
            table.replace(new)
    return tree


@dataclass
class Maintained:
    """A view and its aggregate state.

    Attributes:
        sql: the view's query.
        engine: that runs it.
        types: of the columns of its tables.
        keeps: whether aggregate state is kept if possible.
        all_large: whether its tables count as large.
        parts: whether parts of aggregate state are rewritten; None: the state is not in parts.
        grown: the tables with a column that was added later.
    """

    sql: str
    engine: Engine
    types: Mapping[str, Types] = field(default_factory=lambda: TYPES)
    keeps: bool = True
    all_large: bool = False
    parts: random.Random | None = None
    grown: set[str] = field(default_factory=set)
    kept: set[str] = field(default_factory=set)
    in_parts: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.engine.forget()
        found = compiled(self.sql, self.types)
        self.query, self.breaks_ties = found.text, found.breaks_ties
        tree = parse(self.query)
        self.tables = sorted({f"{t.db}.{t.name}" for t in tree.find_all(exp.Table) if t.db})
        self.reads_clock = reads_clock(tree)
        self.root, self.outputs = build(self.query)
        self.cutter = Cutter(self.types)
        if self.keeps:
            self.root = self.cutter.cut(self.root)
        self._programs: dict[object, Program] = {}
        self._contents: dict[object, exp.Expr] = {}

    def start(self, content: Content, clock: datetime = NOON) -> Multiset:
        """Publish the view over a first content."""
        self.content, self.clock = content, clock
        self.grown.clear()
        self.kept.clear()
        self.in_parts.clear()
        self._load(content, When.NEW)
        return self._publish(clock)

    def peek(self, content: Content, clock: datetime = NOON) -> Multiset:
        """The result of the view over another content."""
        self._load(content, When.NEW)
        return Counter(self.engine.plain_rows(self.computed(clock)))

    def move(
        self,
        content: Content,
        clock: datetime = NOON,
        feed: Feed | None = None,
        grown: Collection[str] = (),
    ) -> tuple[Multiset, Multiset]:
        """Maintain the view, and recompute it; returns both results.

        Args:
            content: of the tables, after the change.
            clock: the time after the change.
            feed: the change; None: the difference.
            grown: tables that get a column in this change.
        """
        self._load(self.content, When.OLD)
        self.grown.update(grown)
        self._load(content, When.NEW)
        feed = net_feed(self.content, content) if feed is None else feed
        feed = {table: self._wide_feed(table, rows, content) for table, rows in feed.items()}
        changed = frozenset(table for table in self.tables if feed.get(table))
        for table in changed:
            types = {**self._types(table), "__w": "int"}
            self.engine.load(f"{table.replace('.', '_')}_change", types, feed[table])
        self._split()
        maintained = self._published.copy()
        maintained.update(self._change(self._program(changed, clock)))
        self.content, self.clock = content, clock
        return Counter({row: n for row, n in maintained.items() if n}), self._publish(clock)

    def compact(self, maintained: Multiset) -> None:
        """Go on from a maintained result, over tables whose rows are in another order."""
        self._published = maintained
        self.content = {table: list(rows)[::-1] for table, rows in self.content.items()}

    def computed(self, clock: datetime) -> exp.Expr:
        """The view's query over the tables after the change."""
        key = clock if self.reads_clock else None
        if key not in self._contents:
            # Of PIVOT, DuckDB has other names and zeros than Spark.
            text = self.query if self.breaks_ties or "PIVOT" in self.sql else self.sql
            self._contents[key] = content_of(text, When.NEW, clock)
        return self._contents[key]

    def _publish(self, clock: datetime) -> Multiset:
        """Compute the view; returns its rows, which nothing may modify."""
        self.engine.create("published", self.computed(clock))
        self._published = Counter(self.engine.table("published"))
        return self._published

    def _load(self, content: Content, when: When) -> None:
        for table in self.tables:
            name = f"{table.replace('.', '_')}_{when}"
            rows = content[table]
            if table in self.grown:
                rows = [(*row, at % 3 or None) for at, row in enumerate(rows)]
            self.engine.load(name, self._types(table), rows)

    def _types(self, table: str) -> Types:
        return {**self.types[table], LATER: "int"} if table in self.grown else self.types[table]

    def _wide_feed(self, table: str, rows: Sequence[Row], content: Content) -> Sequence[Row]:
        """The change with the new column, which is the only difference of some rows."""
        if table not in self.grown:
            return rows
        filled = [(*row, *pair) for row in content[table][:2] for pair in ((None, -1), (1, 1))]
        return [(*row[:-1], at % 3 or None, row[-1]) for at, row in enumerate(rows)] + filled

    def _program(self, changed: frozenset[str], clock: datetime) -> Program:
        """The program, cached for the same tables."""
        key = (changed, frozenset(self.in_parts), (self.clock, clock) if self.reads_clock else None)
        if key not in self._programs:
            clocks = {When.OLD: self.clock, When.NEW: clock} if self.reads_clock else {}
            relations = InDuckDb(changed, dict(self.in_parts), self.all_large)
            self._programs[key] = derive(
                (self.root, self.outputs),
                relations,
                clocks,
                last=DeleteInsert(),
                states=self.cutter.states,
            )
        return self._programs[key]

    def _change(self, program: Program) -> Multiset:
        """The change that the program computes; state may be in parts, and appended to."""
        for step in program.steps:
            match step:
                case StateRead():
                    self._read(step)
                case StateUpdate():
                    self._keep(step)
                case _:
                    self.engine.create(step.name, step.query)
        if program.change is None:
            return Counter()
        rows = self.engine.rows(program.change)
        found = Counter({row[:-1]: int(str(row[-1])) for row in rows})
        assert len(found) == len(rows), "a row comes twice in one change"
        assert 0 not in found.values(), "a row that does not change"
        return found

    def _read(self, step: StateRead) -> None:
        name = step.state.table.replace(".", "_")
        if step.state.table in self.kept:
            self.engine.also(f"{name}_old", f"{name}_new")
        else:
            self.engine.create(f"{name}_old", step.content)
        self.kept.add(step.state.table)

    def _keep(self, step: StateUpdate) -> None:
        table = step.state.table
        name = table.replace(".", "_")
        if step.update is None:
            self.engine.also(f"{name}_new", f"{name}_old")
            return
        if table in self.in_parts and self.parts is not None and self.parts.random() < 0.7:
            assert step.change is not None
            old = exp.select("*").from_(exp.table_(f"{name}_old"))
            self.engine.create(f"{name}_new", exp.union(old, step.change, distinct=False))
            return
        self.engine.create(f"{name}_new", step.update)

    def _split(self) -> None:
        """Split aggregate state into parts, before the program is derived for it."""
        for state in self.cutter.states if self.parts and self.engine.splits else ():
            name = state.table.replace(".", "_")
            if state.has_extremes:
                # Its only row is always rewritten.
                continue
            if state.table in self.kept and state.table not in self.in_parts:
                whole = exp.select("*").from_(f"{name}_new")
                self.engine.create(f"{name}_parts", parts_of(state, whole))
                self.engine.also(f"{name}_new", f"{name}_parts")
                self.in_parts[state.table] = self._part_types(f"{name}_new")

    def _part_types(self, name: str) -> Mapping[str, str]:
        return {
            column: kind if kind.startswith("DECIMAL") else "bigint"
            for column, kind in self.engine.types(name).items()
        }


def net_feed(before: Content, after: Content) -> Feed:
    """The net change, one row for each row."""
    found = {}
    for table, rows in after.items():
        change = Counter(rows)
        change.subtract(Counter(before[table]))
        found[table] = [(*row, count) for row, count in change.items() if count]
    return found


def parts_of(state: State, whole: exp.Select) -> exp.Query:
    """Each group in three parts that add up to it."""
    negative = exp.select(
        *state.keys,
        *(f"-{name} AS {name}" for name in state.columns if name not in state.keys),
    ).from_(whole.subquery("t"))
    return exp.union(exp.union(whole, whole.copy(), distinct=False), negative, distinct=False)


def differing(maintained: Multiset, computed: Multiset) -> dict[Row, int]:
    """The rows in which two results differ, with the surplus in the maintained one."""
    difference = Counter(maintained)
    difference.subtract(computed)
    return {row: count for row, count in difference.items() if count}
