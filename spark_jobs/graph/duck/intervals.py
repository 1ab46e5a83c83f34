"""Dates and moments moved by an interval that is written in the query."""

from __future__ import annotations

import re

from sqlglot import exp

from spark_jobs.graph.dialect import to_sql
from spark_jobs.graph.duck.errors import NotTranslatedError
from spark_jobs.graph.duck.kinds import DATE, TIMESTAMP, TIMESTAMP_NTZ
from spark_jobs.graph.duck.typed import Typed

# Moved by these, a date stays a date.
_OF_DATES = {"DAY": "DAY", "MONTH": "MONTH", "YEAR": "YEAR"}
_OF_MOMENTS = {**_OF_DATES, "HOUR": "HOUR", "MINUTE": "MINUTE", "SECOND": "SECOND"}


def length(node: exp.Interval) -> tuple[int, str]:
    """How many of which unit, in capitals and the singular.

    Raises:
        NotTranslatedError: it is not an integer of one unit.

    >>> from spark_jobs.graph.dialect import parse
    >>> length(parse("INTERVAL '90' DAY"))
    (90, 'DAY')
    """
    unit = node.args.get("unit")
    text = node.this.name if isinstance(node.this, exp.Literal) else ""
    found = re.fullmatch(r"\s*(-?\d+)\s*", text)
    name = unit.name.upper().removesuffix("S") if isinstance(unit, exp.Var) else ""
    if found is None or name not in _OF_MOMENTS:
        raise NotTranslatedError(to_sql(node))
    return int(found[1]), name


def moved(value: Typed, node: exp.Interval, *, back: bool) -> Typed:
    """A date or a moment plus or minus an interval.

    Raises:
        NotTranslatedError: Spark would make another type of it.
    """
    count, unit = length(node)
    units = _OF_DATES if value.kind == DATE else _OF_MOMENTS
    if value.kind not in {DATE, TIMESTAMP, TIMESTAMP_NTZ} or unit not in units:
        raise NotTranslatedError(f"{value.kind} and {node.sql('spark')}")
    sign = "-" if back else "+"
    text = f"{value.sql} {sign} INTERVAL ({count}) {units[unit]}"
    return Typed(f"CAST({text} AS {value.kind.in_duckdb})", value.kind)
