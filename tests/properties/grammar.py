"""Random queries over three small tables, in the incremental subset of SQL."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.properties.expressions import KINDS, Column, Columns, Expressions
from tests.properties.tables import DOUBLE, FLAG, INT, LIST, TEXT, TYPES, Tables

Kinds = Sequence[str]
_SETS = ("UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL")
_JOINS = ("JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN")
_JOINS += ("LEFT ANTI JOIN", "CROSS JOIN")
_NULLS = ("", "", " NULLS FIRST", " NULLS LAST")


class Grammar:
    """Generates queries from a random number generator."""

    def __init__(self, rng: random.Random, *, tables: Tables = TYPES, depth: int = 2) -> None:
        self.rng, self.depth, self.tables = rng, depth, tables
        self.aliases = 0
        self.write = Expressions(rng)
        held = {kind for columns in tables.values() for kind in columns.values()}
        self.kinds = [kind for kind in KINDS if kind in held]
        self.lists = LIST in held

    def query(self, depth: int | None = None, kinds: Kinds | None = None) -> str:
        """A query; its columns are c0, c1, … of the kinds."""
        depth = self.depth if depth is None else depth
        kinds = kinds or [self.rng.choice(self.kinds) for _ in range(self.rng.randint(1, 3))]
        forms = [self._plain, self._plain, self._grouped, self._grouped, self._distinct]
        if depth > 0:
            forms += [self._windowed, self._windowed, self._limited, self._united]
            forms += [self._sets, self._common, self._grouped, self._matched]
            forms += [self._pivoted, self._unpivoted]
            forms += [self._exploded] if self.lists else []
        return self.rng.choice(forms)(depth, kinds)

    def _alias(self) -> str:
        self.aliases += 1
        return f"t{self.aliases}"

    def _relation(self, depth: int, *, inner: float = 0.35) -> tuple[str, list[Column]]:
        """A relation with its alias, and its columns."""
        alias = self._alias()
        if depth > 0 and self.rng.random() < inner:
            kinds = [INT, *(self.rng.choice(self.kinds) for _ in range(self.rng.randint(0, 2)))]
            forms = [self.query, self._grouped, self._grouped, self._windowed, self._windowed]
            text = self.rng.choice(forms)(depth - 1, kinds)
            return f"({text}) AS {alias}", [(f"{alias}.c{i}", k) for i, k in enumerate(kinds)]
        table = self.rng.choice(sorted(self.tables))
        columns = [(f"{alias}.{name}", kind) for name, kind in self.tables[table].items()]
        return f"{table} AS {alias}", columns

    def _from(self, depth: int) -> tuple[str, list[Column]]:
        text, columns = self._relation(depth)
        for _ in range(self.rng.choice((0, 0, 1, 1, 2)) if depth > 0 else 0):
            kind = self.rng.choice(_JOINS)
            more, others = self._relation(depth - 1, inner=0.5)
            text += f" {kind} {more}"
            if kind != "CROSS JOIN":
                text += f" ON {self._tie(columns, others)}"
                if self.rng.random() < 0.3:
                    text += f" AND {self.write.condition([*columns, *others])}"
            if "SEMI" not in kind and "ANTI" not in kind:
                columns = [*columns, *others]
        return text, columns

    def _tie(self, columns: Columns, others: Columns) -> str:
        """A join condition: mostly that two columns are equal."""
        pairs = [(a, b) for a, its in columns for b, kind in others if its == kind and its != LIST]
        if not pairs:
            return f"{self.write.value(columns, INT)} = {self.write.value(others, INT)}"
        # Integers match most often.
        ints = [(a, b) for a, b in pairs if (a, INT) in columns]
        one, other = self.rng.choice(ints if ints and self.rng.random() < 0.6 else pairs)
        return f"{one} {self.rng.choice(('=', '=', '=', '=', '<=>', '<'))} {other}"

    def _where(self, columns: Columns, depth: int) -> str:
        found = []
        if self.rng.random() < 0.4:
            found.append(self.write.condition(columns, clock=self.rng.random() < 0.3))
        if self.rng.random() < 0.1:
            one, two, three, four = (self.write.condition(columns) for _ in range(4))
            found.append(f"(({one} AND {two}) OR ({three} AND {four}))")
        if depth > 0 and self.rng.random() < 0.4:
            found.append(self._subquery(columns, depth))
        return f" WHERE {' AND '.join(found)}" if found else ""

    def _subquery(self, columns: Columns, depth: int) -> str:
        alias, write = self._alias(), self.write
        table = self.rng.choice(sorted(self.tables))
        names = [(f"{alias}.{name}", kind) for name, kind in self.tables[table].items()]
        numbers = [name for name, kind in names if kind == INT]
        outer, ours = write.value(columns, INT), self.rng.choice(numbers)
        column = self.rng.choice([name for name, kind in columns if kind == INT] or [outer])
        tie, value = f"{ours} = {column}", self.rng.choice(numbers)
        more = f" AND {write.condition(names)}" if self.rng.random() < 0.4 else ""
        if depth > 1 and self.rng.random() < 0.3:
            more += f" AND {self._subquery(names, depth - 1)}"
        unequal = f" AND {self.rng.choice(numbers)} <> {column}" if self.rng.random() < 0.3 else ""
        call = self.rng.choice(("COUNT(*)", f"SUM({ours})", f"MAX({ours})", f"MIN({value})"))
        source = f"{table} AS {alias}"
        one, other = write.condition(names), write.condition(names)
        groups = f"(SELECT {ours} AS k, MAX({value}) AS v FROM {source} GROUP BY {ours}) q{alias}"
        grouped = f"{tie}{more} GROUP BY {write.value(names, INT)} HAVING {call} > 0"
        first = f"{tie}{more} {self._order(names)} LIMIT"
        return self.rng.choice(
            [
                f"{outer} >= (SELECT {value} FROM {source} WHERE {one} ORDER BY {value} LIMIT 1)",
                f"{outer} >= (SELECT q{alias}.v FROM {groups} WHERE q{alias}.k = {column})",
                f"EXISTS (SELECT 1 FROM {source} WHERE ({tie} AND {one}) OR ({tie} AND {other}))",
                f"IF(EXISTS (SELECT 1 FROM {source} WHERE {tie}{more}), {outer} > 0, {outer} < 2)",
                f"({outer} = 1 OR NOT EXISTS (SELECT 1 FROM {source} WHERE {one}))",
                f"EXISTS (SELECT 1 FROM {source} WHERE {tie}{more}{unequal})",
                f"NOT EXISTS (SELECT 1 FROM {source} WHERE {tie}{more}{unequal})",
                f"{outer} IN (SELECT {value} FROM {source} WHERE {tie}{more})",
                f"{outer} IN (SELECT {ours} FROM {source} GROUP BY {ours} HAVING COUNT(*) > 1)",
                f"NOT {outer} IN (SELECT {value} FROM {source} WHERE {write.condition(names)})",
                f"NOT {outer} IN (SELECT {value} FROM {source} WHERE {tie}{more})",
                f"{outer} >= (SELECT {call} FROM {source} WHERE {write.condition(names)})",
                f"{outer} >= (SELECT {call} FROM {source} WHERE {tie}{more})",
                f"({outer} = 1 OR EXISTS (SELECT 1 FROM {source} WHERE {tie}{more}))",
                f"({outer} = 1 OR {outer} IN (SELECT {value} FROM {source} WHERE {tie}))",
                f"{outer} >= (SELECT {value} FROM {source} WHERE {first} 1)",
                f"{outer} IN (SELECT {value} FROM {source} WHERE {first} 2)",
                f"EXISTS (SELECT 1 FROM {source} WHERE {grouped})",
                f"NOT EXISTS (SELECT 1 FROM {source} WHERE {grouped})",
                f"{outer} IN (SELECT {call} FROM {source} WHERE {grouped})",
                f"NOT {outer} IN (SELECT {call} FROM {source} WHERE {grouped})",
            ]
        )

    def _select(self, values: Sequence[str]) -> str:
        return "SELECT " + ", ".join(f"{value} AS c{i}" for i, value in enumerate(values))

    def _plain(self, depth: int, kinds: Kinds) -> str:
        text, columns = self._from(depth)
        values = [
            self._found(columns, kind)
            if depth > 0 and kind in {FLAG, INT} and self.rng.random() < 0.2
            else self.write.value(columns, kind)
            for kind in kinds
        ]
        return f"{self._select(values)} FROM {text}{self._where(columns, depth)}"

    def _found(self, columns: Columns, kind: str) -> str:
        """A value that a subquery gives."""
        alias, write = self._alias(), self.write
        table = self.rng.choice(sorted(self.tables))
        names = [(f"{alias}.{name}", its) for name, its in self.tables[table].items()]
        ours, value = (
            self.rng.choice([name for name, its in names if its == INT]) for _ in range(2)
        )
        outer, source = write.value(columns, INT), f"{table} AS {alias}"
        where = f" WHERE {write.condition(names)}" if self.rng.random() < 0.6 else ""
        tie = f"{ours} = {write.value(columns, INT)}"
        if kind == INT:
            call = self.rng.choice(("COUNT(*)", f"SUM({value})", f"MIN({value})"))
            return f"(SELECT {call} FROM {source}{where or f' WHERE {tie}'})"
        test = f"{outer} IN (SELECT {value} FROM {source}{where})"
        # In a condition: as a value, Spark says false where SQL and DuckDB say NULL.
        condition = self.rng.choice(
            [
                test,
                f"NOT {test}",
                f"{test} OR {write.condition(columns)}",
                f"NOT ({test} AND {write.condition(columns)})",
                f"{outer} IN (SELECT {value} FROM {source}{where} GROUP BY {value})",
                f"EXISTS (SELECT 1 FROM {source} WHERE {tie})",
            ]
        )
        return f"IF({condition}, TRUE, {self.rng.choice(('FALSE', 'NULL'))})"

    def _distinct(self, depth: int, kinds: Kinds) -> str:
        return self._plain(depth, kinds).replace("SELECT ", "SELECT DISTINCT ", 1)

    def _exploded(self, depth: int, kinds: Kinds) -> str:
        alias = self._alias()
        outer = self.rng.choice(("", " OUTER"))
        columns = [(f"{alias}.{name}", kind) for name, kind in self.tables["silver.c"].items()]
        text = f"silver.c AS {alias} LATERAL VIEW{outer} EXPLODE({alias}.xs) g{alias} AS v"
        columns = [column for column in columns if column[1] != LIST] + [(f"g{alias}.v", INT)]
        values = [self.write.value(columns, kind) for kind in kinds]
        where = self._where(columns, depth)
        if INT in kinds and self.rng.random() < 0.4:
            calls = [self.write.aggregate(columns, kind) for kind in kinds]
            return (
                f"SELECT {calls[0]} AS c0"
                + "".join(f", {call} AS c{i + 1}" for i, call in enumerate(calls[1:]))
                + f" FROM {text}{where} GROUP BY {self.rng.choice(columns)[0]}"
            )
        return f"{self._select(values)} FROM {text}{where}"

    def _keys(self, columns: Columns, count: int) -> list[tuple[str, str]]:
        """The grouping keys with their kinds: mostly columns."""
        known = [column for column in columns if column[1] not in {LIST, DOUBLE}]
        found = []
        for _ in range(count):
            name, kind = self.rng.choice(known or columns)
            found.append((self.write.value([(name, kind)], kind), kind))
        return list(dict.fromkeys(found))

    def _grouped(self, depth: int, kinds: Kinds) -> str:
        text, columns = self._from(depth)
        keys = self._keys(columns, self.rng.choice((0, 1, 1, 1, 2, 2)))
        values, shown = [], dict(keys)
        for kind in kinds:
            key = next((one for one, its in shown.items() if its == kind), None)
            if key is not None and self.rng.random() < 0.8:
                shown.pop(key)
                values.append(key)
            else:
                values.append(self.write.aggregate(columns, kind))
        query = f"{self._select(values)} FROM {text}{self._where(columns, depth)}"
        if keys:
            query += f" GROUP BY {', '.join(key for key, _ in keys)}"
            if self.rng.random() < 0.25:
                query += f" HAVING {self.write.aggregate(columns, INT)} > {self.rng.randint(0, 1)}"
        return query

    def _matched(self, depth: int, kinds: Kinds) -> str:
        """Counts and sums of the rows that a left join finds, for each row or key of its left."""
        left, columns = self._relation(depth - 1)
        right, others = self._relation(depth - 1)
        numbers = [[name for name, kind in one if kind == INT] for one in (columns, others)]
        tie, its = map(self.rng.choice, numbers)
        shown = dict([(tie, INT), *self.rng.sample(columns, self.rng.randint(0, 1))])
        shown = {name: kind for name, kind in shown.items() if kind != LIST}
        values = []
        for kind in kinds:
            key = next((one for one, of in shown.items() if of == kind), None)
            call = "AVG" if kind == DOUBLE else self.rng.choice(("COUNT", "SUM"))
            over = self.rng.choice(others)[0] if call == "COUNT" else self.rng.choice(numbers[1])
            if kind in {INT, DOUBLE} and self.rng.random() < 0.7:
                values.append(f"{call}({over})")
            else:
                values.append(key or self.write.aggregate(others, kind))
        condition = f" AND {self.write.condition(others)}" if self.rng.random() < 0.3 else ""
        query = f"{self._select(values)} FROM {left} LEFT JOIN {right} ON {tie} = {its}{condition}"
        return f"{query} GROUP BY {', '.join(shown)}"

    def _sets(self, depth: int, kinds: Kinds) -> str:
        text, columns = self._from(depth - 1)
        known = [column for column in columns if column[1] not in {LIST, DOUBLE}] or columns
        one, other = self.rng.choice(known), self.rng.choice(known)
        keys = f"{one[0]}, {other[0]}" if one != other else one[0]
        form = self.rng.choice(("ROLLUP ({})", "CUBE ({})", "GROUPING SETS (({}), ())"))
        values = [
            one[0] if kind == one[1] else self.write.aggregate(columns, kind) for kind in kinds
        ]
        if INT in kinds and self.rng.random() < 0.3:
            values[list(kinds).index(INT)] = f"GROUPING({one[0]})"
        where = self._where(columns, depth - 1)
        return f"{self._select(values)} FROM {text}{where} GROUP BY {form.format(keys)}"

    def _prepared(self, depth: int) -> tuple[str, str]:
        """A query of a key and two numbers, g, u and w, and the kind of the key."""
        text, columns = self._from(depth - 1)
        [(key, kind)] = self._keys(columns, 1)
        # Of a known type, as PIVOT and UNPIVOT need it.
        first, second = (f"CAST({self.write.value(columns, INT)} AS INT)" for _ in range(2))
        where = self._where(columns, depth - 1)
        return f"(SELECT {key} AS g, {first} AS u, {second} AS w FROM {text}{where})", kind

    def _pivoted(self, depth: int, kinds: Kinds) -> str:
        query, kind = self._prepared(depth)
        calls = [f"{self.rng.choice(('COUNT', 'SUM', 'MIN', 'MAX'))}(w)", "COUNT(*)"]
        given = ", ".join(f"{call} AS n{i}" for i, call in enumerate(calls))
        columns = [("p.g", kind), *((f"p.v{i}_n{n}", INT) for i in (1, 2) for n in (0, 1))]
        values = [self.write.value(columns, kind) for kind in kinds]
        return (
            f"{self._select(values)} FROM {query} PIVOT ({given} FOR u IN (1 AS v1, 2 AS v2)) AS p"
        )

    def _unpivoted(self, depth: int, kinds: Kinds) -> str:
        query, kind = self._prepared(depth)
        columns = [("p.g", kind), ("p.n", TEXT), ("p.v", INT)]
        values = [self.write.value(columns, kind) for kind in kinds]
        nulls = self.rng.choice(("", " INCLUDE NULLS", " EXCLUDE NULLS"))
        text = f"{query} UNPIVOT{nulls} (v FOR n IN (u AS a, w AS b)) AS p"
        return f"{self._select(values)} FROM {text}{self._where(columns, depth - 1)}"

    def _windowed(self, depth: int, kinds: Kinds) -> str:
        text, columns = self._from(depth - 1)
        values = [self.write.value(columns, kind) for kind in kinds]
        at = next((i for i, kind in enumerate(kinds) if kind in {INT, DOUBLE, FLAG}), None)
        query = self._select(values)
        if at is not None:
            values[at] = self._window(columns, kinds[at])
            more = [i for i, kind in enumerate(kinds) if kind == INT and i > at]
            for i in more:
                if self.rng.random() < 0.3:
                    values[i] = self._of_peers(columns)
            query = self._select(values)
        query += f" FROM {text}{self._where(columns, depth - 1)}"
        if at is None or self.rng.random() < 0.15:
            place = self._place(columns) if at is None else self._rank(columns)
            query += f" QUALIFY {place} <= {self.rng.randint(1, 2)}"
        return query

    def _window(self, columns: Columns, kind: str) -> str:
        part, order = self._partition(columns), self._everything(columns)
        one = self.write.value(columns, kind)
        frame = self.rng.choice(
            (
                "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
                "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
                "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
                "ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING",
            )
        )
        forms = [
            f"MAX({one}) OVER ({part})",
            f"MIN({one}) OVER ({part} {self._order(columns)})",
            f"MAX({one}) OVER ({part} {order} {frame})",
            f"LAG({one}) OVER ({part} {order})",
            f"LEAD({one}, 2) OVER ({part} {order})",
            f"FIRST_VALUE({one}) OVER ({part} {order})",
        ]
        if kind != FLAG:
            forms += [
                f"SUM({one}) OVER ({part})",
                f"SUM({one}) OVER ({part} {self._order(columns)})",
                f"SUM({one}) OVER ({part} {order} {frame})",
                f"SUM({one}) OVER ()",
            ]
        if kind == INT:
            forms += [f"COUNT(*) OVER ({part})", self._place(columns), self._place(columns)]
            forms += [f"NTILE(2) OVER ({part} {order})"]
            forms += [f"COUNT(*) OVER ({part} {order} {frame})"]
            numbers = [name for name, its in columns if its == INT]
            if numbers:
                by = f"ORDER BY {self.rng.choice(numbers)} RANGE"
                forms += [f"SUM({one}) OVER ({part} {by} BETWEEN 1 PRECEDING AND CURRENT ROW)"]
        return self.rng.choice(forms)

    def _of_peers(self, columns: Columns) -> str:
        """A window function with one value for all equal rows.

        Two functions that number equal rows may number them differently, so that each result of
        both is correct.
        """
        part = self._partition(columns)
        forms = (f"COUNT(*) OVER ({part})", self._rank(columns))
        return self.rng.choice(forms)

    def _place(self, columns: Columns) -> str:
        part = self._partition(columns)
        number = f"ROW_NUMBER() OVER ({part} {self._everything(columns)})"
        return self.rng.choice((number, self._rank(columns)))

    def _rank(self, columns: Columns) -> str:
        name = self.rng.choice(("RANK", "DENSE_RANK"))
        return f"{name}() OVER ({self._partition(columns)} {self._order(columns)})"

    def _partition(self, columns: Columns) -> str:
        keys = [key for key, _ in self._keys(columns, self.rng.choice((1, 1, 1, 2)))]
        return f"PARTITION BY {', '.join(keys)}"

    def _way(self) -> str:
        return self.rng.choice(("", " DESC")) + self.rng.choice(_NULLS)

    def _order(self, columns: Columns) -> str:
        names = [name for name, kind in columns if kind != LIST] or [columns[0][0]]
        return f"ORDER BY {self.rng.choice(names)}{self._way()}"

    def _everything(self, columns: Columns) -> str:
        """An order by all columns, so that ties are equal rows."""
        names = [name for name, _ in columns]
        self.rng.shuffle(names)
        return "ORDER BY " + ", ".join(f"{name}{self._way()}" for name in names)

    def _limited(self, depth: int, kinds: Kinds) -> str:
        order = ", ".join(f"c{i}{self._way()}" for i in range(len(kinds)))
        form = self.rng.choice((self._plain, self._grouped, self._windowed))
        query = f"{form(depth - 1, kinds)} ORDER BY {order} LIMIT {self.rng.randint(1, 4)}"
        return query + (" OFFSET 1" if self.rng.random() < 0.2 else "")

    def _united(self, depth: int, kinds: Kinds) -> str:
        forms = (self._plain, self._grouped, self._grouped, self._windowed)
        left, right = (self.rng.choice(forms)(depth - 1, kinds) for _ in range(2))
        return f"{left} {self.rng.choice(_SETS)} {right}"

    def _common(self, depth: int, kinds: Kinds) -> str:
        name, first, second = f"cte{self._alias()}", self._alias(), self._alias()
        inner = [INT, *kinds]
        columns = [(f"{one}.c{i}", k) for one in (first, second) for i, k in enumerate(inner)]
        values = [self.write.value(columns, kind) for kind in kinds]
        kind = self.rng.choice(("JOIN", "LEFT JOIN", "FULL JOIN"))
        return (
            f"WITH {name} AS ({self.query(depth - 1, inner)}) {self._select(values)} "
            f"FROM {name} AS {first} {kind} {name} AS {second} ON {first}.c0 = {second}.c0"
        )
