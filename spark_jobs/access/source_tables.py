"""Reads tables' columns, types and primary keys from the source database's catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

# A domain is sent as its base type, and an array by its elements.
_COLUMNS = """
WITH RECURSIVE bases AS (
  SELECT t.oid, t.oid AS base, t.typtype, t.typbasetype, -1 AS typmod FROM pg_type t
  UNION ALL
  SELECT b.oid, t.oid, t.typtype, t.typbasetype, b.typmod
  FROM bases b JOIN pg_type t ON t.oid = b.typbasetype WHERE b.typtype = 'd'
)
SELECT a.attname, format_type(a.atttypid, a.atttypmod), t.oid, t.typname, t.typtype,
  CASE WHEN d.typtype = 'd' THEN d.typtypmod ELSE a.atttypmod END,
  e.oid, e.typname, e.typtype
FROM pg_attribute a
JOIN pg_type d ON d.oid = a.atttypid
JOIN bases b ON b.oid = a.atttypid AND b.typtype <> 'd'
JOIN pg_type t ON t.oid = b.base
LEFT JOIN pg_type e ON e.typarray = t.oid
WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""
# Without a primary key the connector uses a unique index, which identifies rows only if it is not
# partial and has no NULL.
_KEY = """
SELECT array_agg(a.attname::text ORDER BY k.place)
FROM pg_index i
CROSS JOIN LATERAL unnest(i.indkey[0:i.indnkeyatts - 1]) WITH ORDINALITY AS k (attnum, place)
LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum AND a.attnotnull
WHERE i.indrelid = to_regclass(%s) AND i.indisunique AND i.indpred IS NULL
GROUP BY i.indexrelid, i.indisprimary
HAVING bool_and(a.attname IS NOT NULL)
ORDER BY i.indisprimary DESC, i.indexrelid::regclass::text
LIMIT 1
"""
_FULL = "SELECT relreplident = 'f' FROM pg_class WHERE oid = to_regclass(%s)"
ENUM = "e"
# Elements of arrays for which the connector sends a placeholder if an update left a large one as it
# was; those of which it sends no column at all.
_HELD = frozenset(["text", "varchar", "bpchar", "json", "jsonb", "bytea", "int4", "int8", "uuid"])
_NO_COLUMN = frozenset(["money", "interval", "varbit", "xml", "name", "point"])


@dataclass(frozen=True)
class PostgresType:
    """The type of a column's values in the replication protocol.

    Attributes:
        name: as in ``pg_type``, such as ``bpchar``; for an array, that of its elements.
        oid: of the same.
        kind: ``pg_type.typtype`` of the same, ``e`` for an enumeration.
        modifier: the column's type modifier, -1 if there is none.
        array: the oid of the array type; None for a type without elements.
        shown: the declared type as ``psql`` shows it.
    """

    name: str
    oid: int
    kind: str
    modifier: int
    array: int | None
    shown: str


@dataclass(frozen=True)
class SourceTable:
    """A table of the source database.

    Attributes:
        columns: types by column name, in the table's order.
        key: the columns of the primary key, or else of a unique index over NOT NULL columns; () if
            there is neither.
        full: whether updates tell all old values (``REPLICA IDENTITY FULL``).
    """

    columns: Mapping[str, PostgresType]
    key: tuple[str, ...]
    full: bool = False

    @property
    def arrays_left_out(self) -> list[str]:
        """The columns because of which the connector skips an update that left them as they were.

        Only values of more than about 2 kB are affected.
        """
        return [
            name
            for name, one in self.columns.items()
            if one.array is not None and one.name not in _HELD | _NO_COLUMN and not self.full
        ]


def describe_table(connection: psycopg.Connection[Any], table: str) -> SourceTable | None:
    """The columns and the key of a table; None if it does not exist.

    Args:
        connection: to the source database.
        table: as ``schema.table``.
    """
    name = sql.Identifier(*table.split(".")).as_string(connection)
    columns = {
        name: PostgresType(
            name=element or base,
            oid=element_oid or oid,
            kind=element_kind or kind,
            modifier=modifier,
            array=oid if element else None,
            shown=shown,
        )
        for (
            name,
            shown,
            oid,
            base,
            kind,
            modifier,
            element_oid,
            element,
            element_kind,
        ) in connection.execute(_COLUMNS, [name]).fetchall()
    }
    if not columns:
        return None
    key = connection.execute(_KEY, [name]).fetchone()
    full = connection.execute(_FULL, [name]).fetchone()
    return SourceTable(columns, tuple(key[0]) if key else (), full=bool(full and full[0]))
