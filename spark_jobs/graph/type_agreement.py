"""In what Spark, Arrow, delta-rs and DuckDB agree about values, by type.

Rows may leave Spark only where all that read or write them afterwards mean the same by a value.
This is the one list of the types for which that is known; tests hold it against the engines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

_DECIMAL = re.compile(r"decimal\(\s*\d+\s*,\s*\d+\s*\)")
# What a type is made of as Spark SQL writes it: names of types, and of a struct's fields.
_PART = re.compile(r"decimal\([^()]*\)|[\w-]+:|[<>,]|[\w-]+")


@dataclass(frozen=True)
class Agreement:
    """What holds of the values of a type.

    Attributes:
        compared: all engines find the same values equal. Floating point has NaN and -0.0.
        keyed: so do files of any writer, of which rows are looked up by value. Files hold moments
            in several forms.
        bounded: a table's log has their least and greatest exactly, or wider. Those of moments are
            cut to milliseconds, and those of decimals may pass through floating point.
        as_text: Spark and Arrow write them as the same text.
        duckdb: the type as DuckDB names it; None where DuckDB does not compute with it.
    """

    compared: bool = True
    keyed: bool = True
    bounded: bool = False
    as_text: bool = False
    duckdb: str | None = None


_WHOLE: Final = {"tinyint": "TINYINT", "smallint": "SMALLINT", "int": "INTEGER", "bigint": "BIGINT"}
# Every type whose values mean the same in Spark, in Arrow and in a table; see also ``moved``.
AGREEMENTS: Final = {
    **{
        name: Agreement(bounded=True, as_text=True, duckdb=duckdb)
        for name, duckdb in _WHOLE.items()
    },
    "boolean": Agreement(duckdb="BOOLEAN"),
    "string": Agreement(as_text=True, duckdb="VARCHAR"),
    "binary": Agreement(),
    "date": Agreement(bounded=True, duckdb="DATE"),
    "timestamp": Agreement(keyed=False, duckdb="TIMESTAMP WITH TIME ZONE"),
    "timestamp_ntz": Agreement(keyed=False, duckdb="TIMESTAMP"),
    "decimal": Agreement(duckdb="DECIMAL"),
    "double": Agreement(compared=False, keyed=False, duckdb="DOUBLE"),
    "float": Agreement(compared=False, keyed=False),
}
_NESTED: Final = frozenset({"array", "map", "struct"})
_OF_ARROW: Final = {
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "date32[day]": "date",
}
# Nothing is known of any other type.
_NONE: Final = Agreement(compared=False, keyed=False)


def agreement(kind: str) -> Agreement:
    """What holds of a type as Spark SQL writes it.

    >>> agreement("decimal(12,2)").keyed, agreement("array<int>").compared
    (True, False)
    """
    return AGREEMENTS.get("decimal" if _DECIMAL.fullmatch(kind) else kind, _NONE)


def moved(kinds: Iterable[str]) -> bool:
    """Whether values of types mean the same in Spark, in Arrow and in a table.

    >>> moved(["struct<a:array<int>>", "double"]), moved(["variant"]), moved(["map<string,void>"])
    (True, False, False)
    """
    return all(
        part.endswith(":") or part in "<>," or part in _NESTED or agreement(part) is not _NONE
        for kind in kinds
        for part in _parts(kind)
    )


def compared(kinds: Iterable[str]) -> bool:
    """Whether all engines tell values of types apart alike."""
    return all(agreement(one).compared for one in kinds)


def keyed(kinds: Iterable[str]) -> bool:
    """Whether rows can be looked up by values of these types.

    >>> keyed(["bigint", "decimal(12,2)"]), keyed(["double"])
    (True, False)
    """
    return all(agreement(one).keyed for one in kinds)


def bounded(arrow: Iterable[object]) -> bool:
    """Whether a table's log can tell where values of these types of Arrow's lie.

    >>> bounded(["int64"]), bounded(["timestamp[us, tz=UTC]"])
    (True, False)
    """
    return all(agreement(_OF_ARROW.get(str(one), "")).bounded for one in arrow)


def _parts(kind: str) -> list[str]:
    """The words of a type; a text that is no type is one word."""
    found = _PART.findall(kind)
    return found if "".join(found) == kind else [kind]
