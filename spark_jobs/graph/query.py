"""Checks queries that users type: one SELECT over declared tables, and nothing else."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import KW_ONLY
from typing import Final

from sqlglot import exp
from sqlglot.errors import SqlglotError

from spark_jobs.errors import LakehouseError, Location
from spark_jobs.graph.errors import NotOneSelectError, SqlSyntaxError, UnknownTableError
from spark_jobs.graph.parsing import SqlText, parse_select
from spark_jobs.graph.sql import table_nodes
from spark_jobs.names import OPS_SCHEMA

# The file name in errors of a query that is in no file.
PLACE: Final = "query"

# Functions that call Java methods, compute the name of what they read, or read files.
UNSAFE_FUNCTIONS: Final = frozenset(
    {"java_method", "reflect", "try_reflect", "identifier", "from_protobuf", "to_protobuf"}
)

# Functions whose options may name a file, with the number of their arguments without options.
FILES_IN_OPTIONS: Final = {"from_avro": 2, "from_xml": 2, "schema_of_avro": 1, "schema_of_xml": 1}

# Allowed table functions. Others, such as Delta's table_changes_by_path, read undeclared files.
TABLE_FUNCTIONS: Final = frozenset(
    {
        "explode",
        "explode_outer",
        "inline",
        "inline_outer",
        "json_tuple",
        "posexplode",
        "posexplode_outer",
        "range",
        "sql_keywords",
        "stack",
        "variant_explode",
        "variant_explode_outer",
    }
)


class QueryNotReadOnlyError(LakehouseError):
    """The statement is not one SELECT, or may do more than read."""

    condition = "QUERY_NOT_READ_ONLY"
    problem: str
    _: KW_ONLY
    location: Location | None = None
    primary = "the query must be one SELECT that only reads: {problem}"
    hint = "Change tables only through files in sql/ and tidemark refresh."


def query_tables(query: str, *, known: Collection[str]) -> dict[str, bool]:
    """The tables that a query reads, by name, and whether it names a version.

    >>> query_tables("SELECT * FROM silver.orders VERSION AS OF 3 AS o", known=["silver.orders"])
    {'silver.orders': True}

    Args:
        query: the user's text.
        known: readable tables, as ``schema.name`` in lower case.

    Raises:
        SqlSyntaxError: it is not valid SQL.
        QueryNotReadOnlyError: it is not one SELECT, or may do more than read.
        UnknownTableError: it reads an unknown table.
    """
    text = SqlText(PLACE, query)
    tree = one_select(text)
    _refuse_effects(tree, text)
    found: dict[str, bool] = {}
    for node in tables_in(tree, text):
        table = _known_table(node, known, text)
        versioned = node.args.get("version") is not None
        if versioned and table.startswith(f"{OPS_SCHEMA}."):
            problem = f"{table} is made when it is read and has no versions"
            raise SqlSyntaxError(problem, location=text.of(node))
        if versioned and not node.alias:
            problem = f"a table at a version needs an alias, for instance AS {node.name}"
            raise SqlSyntaxError(problem, location=text.of(node))
        found[table] = found.get(table, False) or versioned
    return dict(sorted(found.items()))


def tables_in(tree: exp.Query, text: SqlText) -> list[exp.Table]:
    """All references to stored tables.

    Raises:
        SqlSyntaxError: the tree is not a valid query.
    """
    try:
        return list(table_nodes(tree))
    except SqlglotError as error:
        problem = "a part of it must be a query, but is not"
        raise SqlSyntaxError(problem, location=text.first()) from error


def one_select(text: SqlText) -> exp.Query:
    """Parse a user's text, which must be one SELECT.

    Raises:
        SqlSyntaxError: it is not valid SQL.
        QueryNotReadOnlyError: it is not one SELECT.
    """
    try:
        return parse_select(text)
    except NotOneSelectError as error:
        raise QueryNotReadOnlyError(
            error.primary.partition(": ")[2], location=error.location
        ) from error


def _refuse_effects(tree: exp.Query, text: SqlText) -> None:
    for node in tree.walk():
        problem = _effect(node)
        if problem is not None:
            raise QueryNotReadOnlyError(problem, location=text.of(node))


def _effect(node: exp.Expr) -> str | None:
    """What a node may do besides reading declared tables, or None."""
    match node:
        case exp.QueryTransform():
            return "TRANSFORM runs a program"
        case exp.Table(this=exp.Func() as function):
            name = _function(function)
            return None if name in TABLE_FUNCTIONS else f"{name} may not be used as a table"
        case exp.Func():
            name = _function(node)
            if len(node.expressions) > FILES_IN_OPTIONS.get(name, len(node.expressions)):
                return f"{name} may not have options, which may name a file"
            return f"{name} may not be called" if name in UNSAFE_FUNCTIONS else None
        case exp.Query():
            return None
        case exp.DML() | exp.DDL() | exp.Command() | exp.Into():
            return f"it holds {node.key.upper()}"
        case _:
            return None


def _function(node: exp.Func) -> str:
    name = node.name if isinstance(node, exp.Anonymous) else node.sql_name()
    return name.strip("`").lower()


def _known_table(node: exp.Table, known: Collection[str], text: SqlText) -> str:
    written = ".".join(part.name for part in node.parts)
    # The name in quotes may contain a dot.
    if len(node.parts) == written.count(".") + 1 and written.lower() in known:
        return written.lower()
    raise UnknownTableError("the query", written, sorted(known), location=text.of(node))
