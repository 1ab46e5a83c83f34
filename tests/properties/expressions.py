"""Random expressions over typed columns; constants are values of the tables."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.properties.tables import (
    DATE,
    DECIMAL,
    DOUBLE,
    FLAG,
    INT,
    LIST,
    MOMENT,
    TEXT,
    VALUES,
    literal,
)

Column = tuple[str, str]
Columns = Sequence[Column]
KINDS = (INT, INT, INT, TEXT, DATE, MOMENT, DECIMAL, DOUBLE, FLAG)
_COMPARE = ("=", "<", ">", "<=", ">=", "<=", ">=", "<>")
# Conversions from one kind to another.
_MADE: dict[str, dict[str, str]] = {
    INT: {
        TEXT: "LENGTH({})",
        DATE: "DAY({})",
        MOMENT: "HOUR({})",
        DECIMAL: "CAST({} AS INT)",
        DOUBLE: "CASE WHEN {} > 0 THEN 1 ELSE 0 END",
        FLAG: "CASE WHEN {} THEN 1 ELSE 0 END",
        LIST: "SIZE({})",
    },
    TEXT: {INT: "CAST({} AS STRING)", DATE: "CAST({} AS STRING)", FLAG: "IF({}, 'a', 'ab')"},
    DATE: {INT: "DATE_ADD(DATE '2026-01-01', CAST({} AS INT))", MOMENT: "CAST({} AS DATE)"},
    MOMENT: {DATE: "CAST({} AS TIMESTAMP)"},
    DECIMAL: {INT: "CAST({} AS DECIMAL(12, 2))", FLAG: "IF({}, 1.50, 2.25)"},
    DOUBLE: {INT: "CAST({} AS DOUBLE)", FLAG: "CASE WHEN {} THEN CAST(0.25 AS DOUBLE) END"},
    FLAG: {
        INT: "({} > 1)",
        TEXT: "({} LIKE 'a%')",
        DATE: "({} > DATE '2026-01-02')",
        DECIMAL: "({} > 1.5)",
        DOUBLE: "({} >= 0)",
    },
}


class Expressions:
    """Generates values, conditions and aggregates."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def constant(self, kind: str) -> str:
        """A value that may occur in the tables."""
        return literal(self.rng.choice(VALUES[kind]))

    def condition(self, columns: Columns, *, clock: bool = False) -> str:
        """A condition on one or two columns; with a clock, it may use the current time."""
        one, kind = self.rng.choice([c for c in columns if c[1] != LIST] or columns)
        same = [name for name, other in columns if other == kind]
        compare = self.rng.choice(_COMPARE)
        if kind == LIST:
            return f"SIZE({one}) > {self.rng.randint(0, 2)}"
        forms = [
            f"{one} {self.rng.choice(_COMPARE)} {self.constant(kind)}",
            f"{one} {self.rng.choice(_COMPARE)} {self.constant(kind)}",
            f"{one} IS NOT NULL",
            f"{one} IS NOT NULL",
            f"({one} IS NULL OR {one} > {self.constant(kind)})",
            f"{one} <=> {self.rng.choice(same)}",
            f"({one} > {self.constant(kind)} OR {self.rng.choice(same)} = {self.constant(kind)})",
            f"COALESCE({one}, {self.constant(kind)}) {compare} {self.constant(kind)}",
            f"{one} IN ({self.constant(kind)}, {self.constant(kind)})",
            f"{one} BETWEEN {self.constant(kind)} AND {self.constant(kind)}",
            f"NOT {one} = {self.constant(kind)}",
        ]
        if kind == TEXT:
            forms += [f"{one} LIKE 'a%'", f"NOT {one} LIKE '%b'"]
        if clock and kind == DATE:
            forms = [f"{one} > DATE_SUB(CURRENT_DATE(), 2)", f"{one} <= CURRENT_DATE()"]
        if clock and kind == MOMENT:
            forms = [f"{one} < CURRENT_TIMESTAMP()"]
        return self.rng.choice(forms)

    def value(self, columns: Columns, kind: str) -> str:
        """A value of a kind: a column, an expression of columns, or a constant."""
        own = [name for name, other in columns if other == kind]
        if own and self.rng.random() < 0.6:
            return self.rng.choice(own)
        if own:
            return self._computed(self.rng.choice(own), columns, kind)
        made = [
            (name, _MADE[kind][other]) for name, other in columns if other in _MADE.get(kind, {})
        ]
        if made:
            name, form = self.rng.choice(made)
            return form.format(name)
        return f"CASE WHEN {self.condition(columns)} THEN {self.constant(kind)} END"

    def _computed(self, one: str, columns: Columns, kind: str) -> str:
        other = self.rng.choice([name for name, its in columns if its == kind])
        forms = [
            f"CASE WHEN {self.condition(columns)} THEN {one} ELSE {self.constant(kind)} END",
            f"COALESCE({one}, {self.constant(kind)})",
            f"COALESCE({one}, {other})",
            f"NULLIF({one}, {self.constant(kind)})",
        ]
        match kind:
            case "int":
                forms += [
                    f"{one} + 1",
                    f"{one} - {other}",
                    f"{one} * 2",
                    f"{one} % 2",
                    f"ABS({one})",
                ]
                forms += [f"GREATEST({one}, {other})", f"- {one}"]
            case "string":
                forms += [f"CONCAT({one}, 'b')", f"SUBSTRING({one}, 1, 1)", f"UPPER({one})"]
            case "date":
                forms += [f"{one} + INTERVAL '1' DAY", f"LEAST({one}, {other})"]
                forms[-2] = f"CAST({forms[-2]} AS DATE)"
            case "timestamp":
                forms += [f"DATE_TRUNC('DAY', {one})", f"DATE_TRUNC('HOUR', {one})"]
            case "decimal(8,2)":
                forms += [f"{one} + 1.25", f"{one} - {other}", f"CAST({one} AS DECIMAL(12, 2)) * 2"]
            case "double":
                forms += [f"{one} + {other}", f"{one} * 2"]
            case "boolean":
                forms += [f"NOT {one}", f"({one} OR {other})"]
        return self.rng.choice(forms)

    def aggregate(self, columns: Columns, kind: str) -> str:
        """An aggregate of a kind."""
        one = self.value(columns, kind)
        condition = f" FILTER (WHERE {self.condition(columns)})"
        text = f"ARRAY_SORT(COLLECT_LIST({self.value(columns, INT)}))"
        forms = [f"MIN({one})", f"MAX({one})", f"MAX({one}){condition}"]
        forms += [f"MIN_BY({one}, {one})"] if self.rng.random() < 0.2 else []
        match kind:
            case "int":
                any_kind = self.rng.choice([name for name, its in columns if its != LIST] or ["1"])
                forms += [
                    "COUNT(*)",
                    "COUNT(*)",
                    f"COUNT({any_kind})",
                    f"COUNT(DISTINCT {any_kind})",
                    f"SUM({one})",
                    f"SUM({one})",
                    f"SUM({one})",
                    f"SUM(DISTINCT {one})",
                    f"SUM({one}){condition}",
                    f"COUNT(*){condition}",
                    f"COUNT_IF({self.condition(columns)})",
                    f"COALESCE(SUM({one}), 0) + COUNT(*)",
                    f"CAST(AVG({one}) * 2 AS INT)",
                    f"CASE WHEN COUNT(*) > 1 THEN SUM({one}) END",
                ]
            case "string":
                forms += [f"LISTAGG({one}, ',') WITHIN GROUP (ORDER BY {one})"]
            case "decimal(8,2)" | "double":
                forms += [f"SUM({one})", f"SUM({one})", f"SUM({one}){condition}"]
                if kind == DOUBLE:
                    forms += [f"AVG({self.value(columns, INT)})"]
            case "boolean":
                forms = [f"BOOL_AND({one})", f"BOOL_OR({one})", "COUNT(*) > 1"]
            case "array<int>":
                forms = [text]
        return self.rng.choice(forms)
