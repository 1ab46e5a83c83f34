"""Checks statements of SQL clients other than SELECT, as parsed by Spark.

Spark reports the kind of a statement and the names in it, so that no second parser can be tricked
into seeing another statement than the one that runs.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from spark_jobs.errors import LakehouseError, Location
from spark_jobs.graph.errors import UnknownTableError
from spark_jobs.graph.parsing import SqlText, plain_sql
from spark_jobs.graph.query import PLACE, QueryNotReadOnlyError, one_select, tables_in

# Spark's names of statements that list or describe objects, or choose a schema.
LOOKS: Final = frozenset(
    {
        "DescribeColumn",
        "DescribeFunction",
        "DescribeNamespace",
        "DescribeRelation",
        "SetCatalogAndNamespace",
        "ShowCatalogsCommand",
        "ShowColumns",
        "ShowCurrentNamespaceCommand",
        "ShowFunctions",
        "ShowNamespacesCommand",
        "ShowTables",
        "ShowViews",
    }
)
SET: Final = "SetCommand"
EXPLAIN: Final = "ExplainCommand"
# The initial schema of sessions; it has no tables.
DEFAULT_SCHEMA: Final = "default"
TIME_ZONE: Final = "spark.sql.session.timeZone"
# Settings that the server and Hive's driver set in each session.
_BROUGHT: Final = frozenset({"spark.sql.binaryOutputStyle", "spark.sql.datetime.java8API.enabled"})
_DRIVERS_PREFIX: Final = "hive.server2."

_SET_TIME_ZONE = re.compile(rf"\s*SET\s+(TIME\s+ZONE\s|{TIME_ZONE}\s*(=|;|$))", re.IGNORECASE)
_EXPLAIN = re.compile(
    r"\s*EXPLAIN\s+(?:(?:EXTENDED|CODEGEN|COST|FORMATTED)\s+)?(?=SELECT\b|WITH\b|\()", re.IGNORECASE
)


class SettingRefusedError(LakehouseError):
    """A client changes a setting that only the server's operator may change."""

    condition = "SETTING_REFUSED"
    keys: Collection[str]
    primary = "clients may not set or list {told}"
    hint = (
        f"Only {TIME_ZONE} can be set. Take others out of the connection's properties and connect "
        "again."
    )

    def __post_init__(self) -> None:
        self.keys = tuple(sorted(self.keys))
        super().__post_init__()

    @property
    def told(self) -> str:
        return ", ".join(map(repr, self.keys)) or "settings of the server"


class SchemaUnknownError(LakehouseError):
    """The endpoint does not serve this schema."""

    condition = "SCHEMA_UNKNOWN"
    name: str
    known: Collection[str]
    misspelt = "name"
    primary = "there is no schema {name!r}"
    detail = "The schemas are {known}."

    def __post_init__(self) -> None:
        self.known = tuple(sorted(self.known))
        super().__post_init__()


@dataclass(frozen=True)
class Statement:
    """A client's statement.

    Attributes:
        kind: Spark's name of the statement.
        text: as sent.
        schema: the session's current schema.
        changed: settings whose value in the session differs from the server's.
        tables: tables that it describes, as written; not those of a query.
        schemas: schemas that it names, as written.
    """

    kind: str
    text: str
    schema: str = DEFAULT_SCHEMA
    changed: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    schemas: tuple[str, ...] = ()


def check_settings(statement: Statement) -> None:
    """Refuse statements that run with changed settings, or would change them.

    Raises:
        SettingRefusedError: with the settings.
    """
    foreign = {
        key
        for key in statement.changed
        if key != TIME_ZONE and key not in _BROUGHT and not key.startswith(_DRIVERS_PREFIX)
    }
    if foreign:
        raise SettingRefusedError(foreign)
    if statement.kind == SET and not _SET_TIME_ZONE.match(statement.text):
        key = re.match(r"\s*SET\s+`?([\w.]+)", statement.text, re.IGNORECASE)
        raise SettingRefusedError([key[1]] if key else [])


def check_look(statement: Statement, *, tables: Collection[str], schemas: Collection[str]) -> None:
    """Refuse to list or describe what is not served: any file could be described by its path.

    Args:
        statement: one of ``LOOKS``.
        tables: served tables, as ``schema.name``.
        schemas: served schemas.

    Raises:
        SchemaUnknownError: it names another schema.
        UnknownTableError: it describes another table.
    """
    for schema in statement.schemas:
        if schema.lower() not in {*schemas, DEFAULT_SCHEMA}:
            raise SchemaUnknownError(schema, schemas)
    for table in statement.tables:
        name = table if "." in table else f"{statement.schema}.{table}"
        if name.lower() not in tables:
            raise UnknownTableError("it", table, sorted(tables), location=Location(PLACE))


def split_explain(text: str) -> tuple[str, str]:
    """The EXPLAIN keywords, and the query to explain.

    >>> split_explain("EXPLAIN FORMATTED SELECT 1")
    ('EXPLAIN FORMATTED ', 'SELECT 1')

    Raises:
        QueryNotReadOnlyError: it explains something else.
    """
    words = _EXPLAIN.match(text)
    if words is None:
        raise QueryNotReadOnlyError("EXPLAIN is for a SELECT")
    return text[: words.end()], text[words.end() :]


def qualified(query: str, schema: str) -> str:
    """The query with a schema added to each table without one, and without comments.

    >>> qualified("WITH a AS (SELECT 1) SELECT orders.x FROM a JOIN orders", "gold")
    'WITH a AS (SELECT 1) SELECT orders.x FROM a JOIN gold.orders'

    Raises:
        SqlSyntaxError: it is not valid SQL.
        QueryNotReadOnlyError: it is not one SELECT.
    """
    text = SqlText(PLACE, query)
    tree, query = one_select(text), plain_sql(text)
    starts = [node.this.meta["start"] for node in tables_in(tree, text) if not node.db]
    for start in sorted(starts, reverse=True):
        query = f"{query[:start]}{schema}.{query[start:]}"
    return query
