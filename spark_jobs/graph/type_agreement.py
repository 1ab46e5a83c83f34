"""The types on whose values Spark, Arrow, delta-rs and DuckDB agree.

Rows may leave Spark only if all readers and writers give their values the same meaning. This is the
only list of such types; tests check it against the engines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

_DECIMAL = re.compile(r"decimal\(\s*\d+\s*,\s*\d+\s*\)")
# Tokens of a Spark SQL type: names of types and of struct fields.
_PART = re.compile(r"decimal\([^()]*\)|[\w-]+:|[<>,]|[\w-]+")


@dataclass(frozen=True)
class Agreement:
    """The properties of a type's values.

    Attributes:
        compared: all engines agree on equality. Floats do not qualify: NaN and -0.0.
        keyed: rows can be looked up by value in files of any writer. Files store timestamps in
            several forms.
        bounded: the log's minimum and maximum are exact or wider. Those of timestamps are truncated
            to milliseconds, those of decimals may be rounded.
        as_text: Spark and Arrow convert them to the same text.
        duckdb: the type's name in DuckDB; None if DuckDB is not used for it.
    """

    compared: bool = True
    keyed: bool = True
    bounded: bool = False
    as_text: bool = False
    duckdb: str | None = None


_WHOLE: Final = {"tinyint": "TINYINT", "smallint": "SMALLINT", "int": "INTEGER", "bigint": "BIGINT"}
# All types whose values have the same meaning in Spark, Arrow and Delta; see also ``moved``.
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
# For all other types.
_NONE: Final = Agreement(compared=False, keyed=False)


def agreement(kind: str) -> Agreement:
    """The properties of a Spark SQL type.

    >>> agreement("decimal(12,2)").keyed, agreement("array<int>").compared
    (True, False)
    """
    return AGREEMENTS.get("decimal" if _DECIMAL.fullmatch(kind) else kind, _NONE)


def moved(kinds: Iterable[str]) -> bool:
    """Whether values of these types have the same meaning in Spark, Arrow and Delta.

    >>> moved(["struct<a:array<int>>", "double"]), moved(["variant"]), moved(["map<string,void>"])
    (True, False, False)
    """
    return all(
        part.endswith(":") or part in "<>," or part in _NESTED or agreement(part) is not _NONE
        for kind in kinds
        for part in _parts(kind)
    )


def compared(kinds: Iterable[str]) -> bool:
    """Whether all engines agree on equality of values of these types."""
    return all(agreement(one).compared for one in kinds)


def keyed(kinds: Iterable[str]) -> bool:
    """Whether rows can be looked up by values of these types.

    >>> keyed(["bigint", "decimal(12,2)"]), keyed(["double"])
    (True, False)
    """
    return all(agreement(one).keyed for one in kinds)


def bounded(arrow: Iterable[object]) -> bool:
    """Whether the log's statistics bound values of these Arrow types correctly.

    >>> bounded(["int64"]), bounded(["timestamp[us, tz=UTC]"])
    (True, False)
    """
    return all(agreement(_OF_ARROW.get(str(one), "")).bounded for one in arrow)


def _parts(kind: str) -> list[str]:
    """The tokens of a type; an invalid type is one token."""
    found = _PART.findall(kind)
    return found if "".join(found) == kind else [kind]
