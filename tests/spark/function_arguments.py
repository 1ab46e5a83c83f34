"""Measures how many arguments each function of the pinned Spark takes.

Spark's analyzer is asked about each function with no argument, with one, and so on, all NULL. A
number is refused if the analyzer says so; any other complaint is about the NULLs, so that the
number is fine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from spark_jobs.graph.functions import spark_functions
from tests.spark.readings import readings

# No function takes more, unless it takes any number.
_MOST = 8
_NUMBER_REFUSED = re.compile(r"WRONG_NUM_ARGS|^REQUIRED_PARAMETER_NOT_FOUND$")
_NO_VALUE = ("NOT_A_SCALAR_FUNCTION", "UNRESOLVED_ROUTINE")
# Functions with a form of their own in Spark's grammar: DATE_ADD(DAY, 1, x).
_OF_UNITS = ("date_add", "dateadd", "date_diff", "datediff")


def argument_counts(spark: Any) -> dict[str, str]:
    """For each function, what it takes and its signature, as ``2-3 (str, pos[, len])``.

    Functions that take any number, and syntax such as CAST, are left out.
    """
    names = list(spark_functions())
    as_value = _taken(spark, names, "SELECT (%s(%s))")
    tables = [name for name in names if set(as_value[name]) & set(_NO_VALUE)]
    as_table = _taken(spark, tables, "SELECT * FROM %s(%s)")
    found = {}
    for name, usage in zip(names, readings(spark).usages(names), strict=True):
        conditions = as_table[name] if name in tables else as_value[name]
        counts = {at for at, one in enumerate(conditions) if not _NUMBER_REFUSED.search(one)}
        if name in _OF_UNITS:
            counts.add(3)
        if counts and len(counts) <= _MOST:
            found[name] = f"{_shown(counts)} {_signature(name, usage)}".rstrip()
    return found


def _taken(spark: Any, names: Iterable[str], text: str) -> dict[str, list[str]]:
    """The conditions of calls with 0, 1, … arguments, for each function."""
    calls = [(name, count) for name in names for count in range(_MOST + 1)]
    texts = [text % (name, ", ".join(["NULL"] * count)) for name, count in calls]
    found: dict[str, list[str]] = {}
    for (name, _), one in zip(calls, readings(spark).conditions(texts), strict=True):
        found.setdefault(name, []).append(one)
    return found


def _shown(counts: set[int]) -> str:
    """Numbers in short: ``1``, ``1-3,6-7``, ``2+``, or ``even``."""
    if counts == set(range(0, _MOST + 1, 2)):
        return "even"
    parts: list[list[int]] = []
    for one in sorted(counts):
        if parts and parts[-1][-1] == one - 1:
            parts[-1].append(one)
        else:
            parts.append([one])
    return ",".join(_range(part[0], part[-1]) for part in parts)


def _range(first: int, last: int) -> str:
    if last == _MOST:
        return f"{first}+"
    return str(first) if first == last else f"{first}-{last}"


def _signature(name: str, usage: str) -> str:
    """The arguments as Spark's own description names them; "" if it does not."""
    call = rf"\b(?:_FUNC_|{name})\((?P<names>(?:[^()\n]|\([^()\n]*\))*)\)"
    forms = [one["names"].strip() for one in re.finditer(call, usage, re.IGNORECASE)]
    named = [one for one in forms if one != "*"]
    return f"({max(named, key=_length)})" if named else ""


def _length(arguments: str) -> int:
    """The number of commas outside of parentheses; the first of the longest forms is taken."""
    return re.sub(r"\([^()]*\)", "", arguments).count(",")
