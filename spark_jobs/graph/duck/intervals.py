"""Adding literal intervals to dates and timestamps."""

from __future__ import annotations

import re

from sqlglot import exp

from spark_jobs.graph.dialect import to_sql
from spark_jobs.graph.duck.errors import NotTranslatedError
from spark_jobs.graph.duck.kinds import DATE, TIMESTAMP, TIMESTAMP_NTZ
from spark_jobs.graph.duck.typed import Typed

# Units that keep a date a date.
_OF_DATES = {"DAY": "DAY", "MONTH": "MONTH", "YEAR": "YEAR"}
_OF_MOMENTS = {**_OF_DATES, "HOUR": "HOUR", "MINUTE": "MINUTE", "SECOND": "SECOND"}


def length(node: exp.Interval) -> tuple[int, str]:
    """The number and the unit of an interval; the unit in upper case and singular.

    Raises:
        NotTranslatedError: it is not an integer of one unit.

    >>> from spark_jobs.graph.dialect import parse
    >>> length(parse("INTERVAL '90' DAY"))
    (90, 'DAY')

    Raises:
        NotTranslatedError: it is not an integer of one unit.
    """
    unit = node.args.get("unit")
    text = node.this.name if isinstance(node.this, exp.Literal) else ""
    found = re.fullmatch(r"\s*(-?\d+)\s*", text)
    name = unit.name.upper().removesuffix("S") if isinstance(unit, exp.Var) else ""
    if found is None:
        raise NotTranslatedError(to_sql(node))
    return int(found[1]), name


def moved(value: Typed, node: exp.Interval, *, back: bool) -> Typed:
    """A date or timestamp plus or minus an interval.

    Raises:
        NotTranslatedError: Spark's result would have another type.
    """
    count, unit = length(node)
    units = _OF_DATES if value.kind == DATE else _OF_MOMENTS
    if value.kind not in {DATE, TIMESTAMP, TIMESTAMP_NTZ} or unit not in units:
        raise NotTranslatedError(f"{value.kind} and {node.sql('spark')}")
    sign = "-" if back else "+"
    text = f"{value.sql} {sign} INTERVAL ({count}) {units[unit]}"
    return Typed(f"CAST({text} AS {value.kind.in_duckdb})", value.kind)
