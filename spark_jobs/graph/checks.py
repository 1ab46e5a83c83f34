"""Checks of every SELECT, silver or gold, before its columns are resolved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from spark_jobs.definitions.errors import ColumnNameError, ReservedColumnError
from spark_jobs.errors import LakehouseError
from spark_jobs.graph.argument_checks import check_arguments
from spark_jobs.graph.cast_checks import check_casts
from spark_jobs.graph.clause_checks import check_clauses
from spark_jobs.graph.dialect import dialect, to_sql
from spark_jobs.graph.errors import (
    DuplicateColumnError,
    ForbiddenInputError,
    SelectStarError,
    UnknownFunctionError,
    UnknownTableError,
    UnnamedColumnError,
)
from spark_jobs.graph.functions import called_name, is_foreign, is_known, spark_functions
from spark_jobs.graph.literal_checks import check_literals
from spark_jobs.graph.output_names import output_name
from spark_jobs.graph.parsing import SqlText
from spark_jobs.graph.place_checks import check_places
from spark_jobs.graph.resolve import Schemas, resolve
from spark_jobs.graph.semantic_errors import QuotedTableError
from spark_jobs.graph.sql import table_nodes
from spark_jobs.graph.unit_checks import check_units
from spark_jobs.names import COLUMN, RESERVED_COLUMN_PREFIX, TableName


def check_tables(
    tree: exp.Query, declared: Iterable[TableName], source: SqlText, subject: str
) -> Iterator[LakehouseError]:
    """Report tables that no file declares, and fixed versions of tables."""
    known = {str(table) for table in declared}
    for node in table_nodes(tree):
        name = ".".join(part.name for part in node.parts)
        if not node.db and "." in node.name:
            yield QuotedTableError(subject, name, location=source.of(node))
        elif name.lower() not in known:
            yield UnknownTableError(subject, name, sorted(known), location=source.of(node))
        elif node.args.get("version") is not None:
            yield ForbiddenInputError(
                subject,
                name,
                "an earlier version of it never changes, and is deleted some day",
                "Remove VERSION AS OF or TIMESTAMP AS OF; every refresh reads the newest version.",
                location=source.of(node),
            )


def check_functions(tree: exp.Query, source: SqlText, subject: str) -> Iterator[LakehouseError]:
    """Report functions, arguments, literals and places of expressions that Spark does not have."""
    unknown = {
        source.of(node): name
        for node in tree.find_all(exp.Func)
        if (name := called_name(node)) and not is_known(name)
    }
    # The parser takes some functions of other engines for Spark's of the same meaning: SAFE_CAST.
    tokens = dialect().tokenize(source.text)
    for token, following in pairwise(tokens):
        called = token.token_type is TokenType.VAR and following.token_type is TokenType.L_PAREN
        if called and is_foreign(token.text):
            unknown[source.at(token.start)] = token.text.lower()
    for place, name in unknown.items():
        yield UnknownFunctionError(subject, name, sorted(spark_functions()), location=place)
    yield from check_arguments(tree, source)
    yield from check_casts(tokens, source, subject)
    yield from check_literals(tokens, source, subject)
    yield from check_units(tokens, source, subject)
    yield from check_places(tree, source, subject)
    yield from check_clauses(tree, source, subject)


def check_output(
    tree: exp.Query, schemas: Schemas, source: SqlText, subject: str
) -> Iterator[LakehouseError]:
    """Report output columns without a name, with a repeated one, or one that is not allowed."""
    stars = [one for one in tree.selects if one.is_star]
    if stars:
        # Of tables, subqueries and common table expressions alike.
        names = resolve(tree, schemas, source, subject).tree.named_selects
        known = [one for one in names if not one.startswith((RESERVED_COLUMN_PREFIX, "*"))]
        unique = list(dict.fromkeys(known))
        yield SelectStarError(subject, unique, location=source.of(stars[0]))
        return
    seen: set[str] = set()
    for one in tree.selects:
        name = output_name(one)
        place = source.of(one)
        if not name:
            yield UnnamedColumnError(subject, to_sql(one), location=place)
        elif name.startswith(RESERVED_COLUMN_PREFIX):
            yield ReservedColumnError(subject, name, location=place)
        elif not COLUMN.fullmatch(name):
            yield ColumnNameError(subject, name, location=place)
        elif name.lower() in seen:
            yield DuplicateColumnError(subject, name, location=place)
        seen.add(name.lower())
