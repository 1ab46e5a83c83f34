"""Random histories of a view's tables, in which most steps change the view."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from spark_jobs.graph.maintenance.reasons import NotIncrementalError
from tests.properties.engine import Engine
from tests.properties.grammar import Grammar
from tests.properties.maintenance import Content, Feed, Maintained, differing, net_feed
from tests.properties.tables import TYPES, Multiset, Row, Rows, Tables

STEPS = 3
# Number of attempts to find a change with the wanted effect on the view.
TRIES = 12
# A query without rows is mostly replaced by another one.
QUERIES = 5
MOST_ROWS = 14
# A first result with this many rows can change in many ways.
ROWS_ENOUGH = 4
# Share of steps in which a table gets a column.
GROWING = 0.2


@dataclass
class Yield:
    """Statistics of the cases; a case is one step of a history."""

    cases: int = 0
    moved: int = 0
    lost: int = 0
    refused: int = 0
    queries: int = 0

    def add(self, other: Yield) -> None:
        """Add the counts of other cases."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def __str__(self) -> str:
        share = 100 / max(1, self.cases)
        return (
            f"{self.queries} queries, {self.refused} refused; {self.cases} cases: "
            f"{self.moved * share:.0f} % move the result, {self.lost * share:.0f} % lose rows"
        )


def run(engine: Engine, seed: int, tables: Tables = TYPES) -> Yield:
    """Maintain one query through a history.

    Raises:
        AssertionError: the maintained result differs from the query's.
    """
    rng = random.Random(seed)
    found = Yield()
    for _ in range(QUERIES):
        found.queries += 1
        try:
            view = view_of(engine, rng, tables)
        except NotIncrementalError:
            found.refused += 1
            continue
        history = History(rng, view)
        before = history.start()
        if len(before) > 1 or rng.random() < 0.15:
            follow(history, before, found, f"seed {seed}")
            break
    return found


def view_of(engine: Engine, rng: random.Random, tables: Tables) -> Maintained:
    """A random view.

    Raises:
        NotIncrementalError: it has no incremental strategy.
    """
    parts = random.Random(rng.random()) if rng.random() < 0.5 else None
    keeps, all_large = rng.random() < 0.6, rng.random() < 0.5
    sql = Grammar(rng, tables=tables).query()
    return Maintained(sql, engine, tables, keeps=keeps, all_large=all_large, parts=parts)


def follow(history: History, before: Multiset, found: Yield, title: str) -> None:
    """Maintain a view step by step, and count the effects of the steps.

    Raises:
        AssertionError: the maintained result differs from the query's.
    """
    view = history.view
    for step in range(STEPS):
        content, clock, feed = history.step(before)
        maintained, computed = view.move(content, clock, feed, history.growing())
        wrong = differing(maintained, computed)
        assert not wrong, f"{title}, step {step}: {view.sql}\n{feed}\n{wrong}"
        found.cases += 1
        found.moved += before != computed
        found.lost += bool(before - computed)
        before = computed


class History:
    """A sequence of contents of the tables of one view."""

    def __init__(self, rng: random.Random, view: Maintained) -> None:
        self.rng, self.view = rng, view
        self.makers = {table: Rows(rng, view.types[table]) for table in view.tables}
        # A separate generator, so that the cases of a seed do not change.
        self.growth = random.Random(view.sql)

    def start(self) -> Multiset:
        """Publish the view over a first content, sometimes with empty tables."""
        best: tuple[Multiset, Content] = Counter(), {}
        for _ in range(TRIES):
            content = {
                table: list(self.makers[table].multiset(MOST_ROWS).elements())
                if self.rng.random() < 0.9
                else []
                for table in self.view.tables
            }
            found = self.view.peek(content)
            if not best[1] or len(found) > len(best[0]):
                best = found, content
            if len(found) >= ROWS_ENOUGH or self.rng.random() < 0.1:
                break
        return self.view.start(best[1])

    def step(self, before: Multiset) -> tuple[Content, datetime, Feed]:
        """The next content, the time, and the change feed."""
        goal = self.rng.choices(("lose", "move", "any"), (6, 5, 1))[0]
        view, content = self.view, self.view.content
        clock = view.clock
        for _ in range(TRIES):
            content = {
                table: list(multiset.elements()) for table, multiset in self._changed().items()
            }
            clock = view.clock + timedelta(days=self.rng.choice((0, 0, 1, 3)))
            after = view.peek(content, clock)
            lost = bool(before - after)
            if goal == "any" or lost or (goal == "move" and after != before):
                break
        feed = self._noisy(net_feed(view.content, content), content)
        return content, clock, feed

    def growing(self) -> list[str]:
        """The tables that get a column that the view does not read."""
        return [table for table in self.view.tables if self.growth.random() < GROWING]

    def _changed(self) -> Mapping[str, Multiset]:
        count = self.rng.choice((1, 1, 1, 2, 3))
        tables = self.rng.sample(self.view.tables, min(count, len(self.view.tables)))
        found = {}
        for table in self.view.tables:
            before = Counter(self.view.content[table])
            if table in tables:
                before.update(self.makers[table].change(before))
                before = +before
            found[table] = before
        return found

    def _noisy(self, feed: Feed, content: Content) -> Feed:
        """A feed before netting: row by row, including rows that appear and disappear."""
        if self.rng.random() < 0.5:
            return feed
        found = {}
        for table, rows in feed.items():
            one = [
                (*row[:-1], 1 if w > 0 else -1) for row, w in _weights(rows) for _ in range(abs(w))
            ]
            if one or self.rng.random() < 0.3:
                passing = [*content[table][:2], self.makers[table].row()]
                one += [(*row, w) for row in passing if self.rng.random() < 0.5 for w in (1, -1)]
            self.rng.shuffle(one)
            found[table] = one
        return found


def _weights(rows: object) -> list[tuple[Row, int]]:
    return [(row, int(str(row[-1]))) for row in rows]  # type: ignore[attr-defined]
