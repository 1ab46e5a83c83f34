"""Random queries over three small tables, in the part of SQL that has incremental rules."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

# Bags: no keys, NULL everywhere, and few values, so that rows meet.
TABLES = {
    "silver.a": ("k", "x", "y"),
    "silver.b": ("k", "x", "z"),
    "silver.c": ("j", "y", "z"),
}
_COMPARE = ("=", "<", ">", "<=", "<>")


@dataclass
class Grammar:
    """Writes one query after the other from a seed."""

    rng: random.Random
    aliases: int = 0
    depth: int = field(default=2)

    def query(self, depth: int | None = None, arity: int | None = None) -> str:
        """A query; its columns are c0, c1, … and all of them are integers."""
        depth = self.depth if depth is None else depth
        arity = arity or self.rng.randint(1, 3)
        forms = [self._plain, self._plain, self._grouped, self._grouped, self._distinct]
        if depth > 0:
            forms += [self._windowed, self._limited, self._combined, self._sets, self._common]
        return self.rng.choice(forms)(depth, arity)

    def _alias(self) -> str:
        self.aliases += 1
        return f"t{self.aliases}"

    def _relation(self, depth: int) -> tuple[str, list[str]]:
        """A relation with its alias, and its columns."""
        alias = self._alias()
        if depth > 0 and self.rng.random() < 0.3:
            arity = self.rng.randint(1, 3)
            columns = [f"{alias}.c{i}" for i in range(arity)]
            return f"({self.query(depth - 1, arity)}) AS {alias}", columns
        table = self.rng.choice(sorted(TABLES))
        return f"{table} AS {alias}", [f"{alias}.{name}" for name in TABLES[table]]

    def _from(self, depth: int) -> tuple[str, list[str]]:
        text, columns = self._relation(depth)
        kinds = ["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN"]
        kinds += ["LEFT ANTI JOIN", "CROSS JOIN"]
        for _ in range(self.rng.choice((0, 0, 1, 1, 2)) if depth > 0 else 0):
            kind = self.rng.choice(kinds)
            more, others = self._relation(depth - 1)
            text += f" {kind} {more}"
            if kind != "CROSS JOIN":
                text += f" ON {self.rng.choice(columns)} = {self.rng.choice(others)}"
                if self.rng.random() < 0.3:
                    text += f" AND {self._condition(columns + others)}"
            if "SEMI" not in kind and "ANTI" not in kind:
                columns = columns + others
        return text, columns

    def _condition(self, columns: list[str]) -> str:
        one = self.rng.choice(columns)
        return self.rng.choice(
            [
                f"{one} {self.rng.choice(_COMPARE)} {self.rng.randint(0, 3)}",
                f"{one} IS NULL",
                f"{one} IS NOT NULL",
                f"{one} <=> {self.rng.choice(columns)}",
                f"({one} > 1 OR {self.rng.choice(columns)} = 0)",
                f"COALESCE({one}, 2) = {self.rng.randint(0, 3)}",
            ]
        )

    def _where(self, columns: list[str], depth: int) -> str:
        found = [self._condition(columns)] if self.rng.random() < 0.5 else []
        if depth > 0 and self.rng.random() < 0.45:
            found.append(self._subquery(columns))
        return f" WHERE {' AND '.join(found)}" if found else ""

    def _subquery(self, columns: list[str]) -> str:
        alias = self._alias()
        table = self.rng.choice(sorted(TABLES))
        names = [f"{alias}.{name}" for name in TABLES[table]]
        outer, ours = self.rng.choice(columns), self.rng.choice(names)
        tie = f"{ours} = {self.rng.choice(columns)}"
        more = f" AND {self._condition(names)}" if self.rng.random() < 0.4 else ""
        call = self.rng.choice(("COUNT(*)", f"SUM({ours})", f"MAX({ours})", f"MIN({ours})"))
        unequal = f" AND {self.rng.choice(names)} <> {self.rng.choice(columns)}"
        unequal = unequal if self.rng.random() < 0.3 else ""
        source = f"{table} AS {alias}"
        value = self.rng.choice(names)
        return self.rng.choice(
            [
                f"EXISTS (SELECT 1 FROM {source} WHERE {tie}{more}{unequal})",
                f"NOT EXISTS (SELECT 1 FROM {source} WHERE {tie}{more}{unequal})",
                f"{outer} IN (SELECT {value} FROM {source} WHERE {tie}{more})",
                f"{outer} IN (SELECT {ours} FROM {source} GROUP BY {ours} HAVING COUNT(*) > 1)",
                f"NOT {outer} IN (SELECT {value} FROM {source} WHERE {self._condition(names)})",
                f"NOT {outer} IN (SELECT {value} FROM {source} WHERE {tie}{more})",
                f"{outer} >= (SELECT {call} FROM {source} WHERE {self._condition(names)})",
                f"{outer} >= (SELECT {call} FROM {source} WHERE {tie}{more})",
                f"({outer} = 1 OR EXISTS (SELECT 1 FROM {source} WHERE {tie}{more}))",
                f"({outer} = 1 OR {outer} IN (SELECT {value} FROM {source} WHERE {tie}))",
            ]
        )

    def _value(self, columns: list[str]) -> str:
        one = self.rng.choice(columns)
        return self.rng.choice(
            [
                one,
                one,
                one,
                f"{one} + 1",
                f"CASE WHEN {self._condition(columns)} THEN {one} ELSE 0 END",
            ]
        )

    def _plain(self, depth: int, arity: int) -> str:
        text, columns = self._from(depth)
        values = [f"{self._value(columns)} AS c{i}" for i in range(arity)]
        return f"SELECT {', '.join(values)} FROM {text}{self._where(columns, depth)}"

    def _distinct(self, depth: int, arity: int) -> str:
        return self._plain(depth, arity).replace("SELECT ", "SELECT DISTINCT ", 1)

    def _call(self, columns: list[str]) -> str:
        one = self.rng.choice(columns)
        condition = f" FILTER (WHERE {self._condition(columns)})"
        return self.rng.choice(
            [
                "COUNT(*)",
                f"COUNT({one})",
                f"SUM({one})",
                f"MIN({one})",
                f"MAX({one})",
                f"COUNT(DISTINCT {one})",
                f"SUM(DISTINCT {one})",
                f"SUM({one}){condition}",
                f"COUNT(*){condition}",
                f"COALESCE(SUM({one}), 0) + COUNT(*)",
                f"CAST(AVG({one}) * 2 AS INT)",
            ]
        )

    def _grouped(self, depth: int, arity: int) -> str:
        text, columns = self._from(depth)
        count = self.rng.randint(0, min(2, arity))
        keys = [self._value(columns) for _ in range(count)]
        shown = [key for key in keys if self.rng.random() < 0.85]
        values = shown + [self._call(columns) for _ in range(arity - len(shown))]
        outputs = ", ".join(f"{value} AS c{i}" for i, value in enumerate(values))
        query = f"SELECT {outputs} FROM {text}{self._where(columns, depth)}"
        if keys:
            query += f" GROUP BY {', '.join(keys)}"
        elif not any("(" in value for value in values):
            query += " HAVING COUNT(*) >= 0"
        if keys and self.rng.random() < 0.3:
            query += f" HAVING {self._call(columns)} > {self.rng.randint(0, 2)}"
        return query

    def _sets(self, depth: int, arity: int) -> str:
        text, columns = self._from(depth - 1)
        one, other = self.rng.choice(columns), self.rng.choice(columns)
        form = self.rng.choice(("ROLLUP ({})", "CUBE ({})", "GROUPING SETS (({}), ())"))
        keys = f"{one}, {other}" if one != other else one
        values = [one, *(self._call(columns) for _ in range(arity))][:arity]
        outputs = ", ".join(f"{value} AS c{i}" for i, value in enumerate(values))
        # An empty input gives no grand total in Spark, and one elsewhere.
        return f"SELECT {outputs} FROM {text} GROUP BY {form.format(keys)} HAVING COUNT(*) > 0"

    def _windowed(self, depth: int, arity: int) -> str:
        text, columns = self._from(depth - 1)
        part, one = self.rng.choice(columns), self.rng.choice(columns)
        order = ", ".join(dict.fromkeys(columns))
        call = self.rng.choice(
            [
                f"SUM({one}) OVER (PARTITION BY {part})",
                f"COUNT(*) OVER (PARTITION BY {part}, {one})",
                f"RANK() OVER (PARTITION BY {part} ORDER BY {one})",
                f"DENSE_RANK() OVER (PARTITION BY {part} ORDER BY {one} DESC)",
                f"MAX({one}) OVER (PARTITION BY {part} ORDER BY {one})",
                f"ROW_NUMBER() OVER (PARTITION BY {part} ORDER BY {order})",
                f"SUM({one}) OVER ()",
            ]
        )
        values = [call, *(self._value(columns) for _ in range(arity - 1))]
        outputs = ", ".join(f"{value} AS c{i}" for i, value in enumerate(values))
        query = f"SELECT {outputs} FROM {text}{self._where(columns, depth - 1)}"
        if "ROW_NUMBER" in call:
            # Rows that tie are equal, but which of them has which number is open: keep the number.
            query = f"SELECT {call} AS c0"
            query += "".join(f", {self.rng.choice(columns)} AS c{i}" for i in range(1, arity))
            query += f" FROM {text}"
        return query

    def _limited(self, depth: int, arity: int) -> str:
        order = ", ".join(f"c{i}{self.rng.choice((' DESC', ''))}" for i in range(arity))
        query = (
            self._plain(depth - 1, arity)
            if self.rng.random() < 0.5
            else self._grouped(depth - 1, arity)
        )
        query += f" ORDER BY {order} LIMIT {self.rng.randint(1, 4)}"
        return query + (" OFFSET 1" if self.rng.random() < 0.2 else "")

    def _combined(self, depth: int, arity: int) -> str:
        word = self.rng.choice(
            ("UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL")
        )
        left, right = self._plain(depth - 1, arity), self._grouped(depth - 1, arity)
        if self.rng.random() < 0.5:
            right = self._plain(depth - 1, arity)
        return f"{left} {word} {right}"

    def _common(self, depth: int, arity: int) -> str:
        name = f"cte{self._alias()}"
        inner = self.rng.randint(1, 2)
        first, second = self._alias(), self._alias()
        values = [f"{self.rng.choice((first, second))}.c{self.rng.randrange(inner)}"]
        values = [*values, *(f"{first}.c0" for _ in range(arity - 1))]
        outputs = ", ".join(f"{value} AS c{i}" for i, value in enumerate(values))
        kind = self.rng.choice(("JOIN", "LEFT JOIN"))
        return (
            f"WITH {name} AS ({self.query(depth - 1, inner)}) SELECT {outputs} FROM {name} AS "
            f"{first} {kind} {name} AS {second} ON {first}.c0 = {second}.c{inner - 1}"
        )
