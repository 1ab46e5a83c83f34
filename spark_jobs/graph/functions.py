"""Spark's functions: which exist, aggregate, are nondeterministic, or read the clock."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from sqlglot import exp
from typing_extensions import TypeIs

from spark_jobs.graph.dialect import dialect

FUNCTIONS_FILE = Path(__file__).with_name("spark_functions.json")

# The result differs between runs, or depends on the session or user.
NONDETERMINISTIC = frozenset(
    [
        "rand",
        "randn",
        "random",
        "randstr",
        "uniform",
        "shuffle",
        "uuid",
        "monotonically_increasing_id",
        "spark_partition_id",
        "input_file_name",
        "input_file_block_start",
        "input_file_block_length",
        "current_user",
        "user",
        "session_user",
        "current_catalog",
        "current_database",
        "current_schema",
        "version",
        "reflect",
        "java_method",
        "try_reflect",
    ]
)
# The result depends on the clock; a refresh replaces it by a fixed time.
CLOCK = frozenset(
    [
        "now",
        "current_timestamp",
        "current_date",
        "curdate",
        "localtimestamp",
        "unix_timestamp",
        "current_time",
    ]
)
# Aggregates that Spark's catalogue does not list as such.
_AGGREGATES_TOO = frozenset(
    [
        "grouping",
        "grouping_id",
        "bitmap_and_agg",
        "bitmap_construct_agg",
        "bitmap_or_agg",
        "schema_of_variant_agg",
    ]
)
# One row becomes several.
GENERATORS = frozenset(
    [
        "explode",
        "explode_outer",
        "posexplode",
        "posexplode_outer",
        "inline",
        "inline_outer",
        "stack",
        "json_tuple",
    ]
)
# A row may be in several windows of time.
_MULTIPLIERS = GENERATORS | {"window"}
# Syntax that is parsed as a call, but is not in Spark's catalogue.
_SYNTAX = frozenset(
    [
        "cast",
        "try_cast",
        "extract",
        "exists",
        "in",
        "interval",
        "array",
        "map",
        "struct",
        "if",
        "case",
        "coalesce",
        "between",
        "position",
        "timestampadd",
        "timestampdiff",
        "overlay",
        "trim",
    ]
)

# Calls of which Spark's parser makes operators, or may.
_OPERATORS = frozenset(
    [
        "", "cast", "date_add", "date_diff", "dateadd", "datediff", "overlay", "position",
        "positive", "struct", "substr", "substring", "timestampadd", "timestampdiff", "trim",
        "try_cast", "variant_get",
    ]
)  # fmt: skip
# Wrappers of a call.
WRAPPERS = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)


@cache
def spark_functions() -> dict[str, str]:
    """All functions of the supported Spark version by name, with their kind."""
    return json.loads(FUNCTIONS_FILE.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def called_name(node: exp.Expr) -> str:
    """The function's name in Spark, in lower case; "" for syntax and for what is no call.

    >>> from spark_jobs.graph.dialect import parse
    >>> called_name(parse("COLLECT_LIST(x)"))
    'collect_list'
    """
    written = node.meta.get("name")
    if written:
        return str(written).lower()
    if isinstance(node, exp.Anonymous):
        return node.name.lower()
    return ""


def is_known(name: str) -> bool:
    """Whether Spark has a function of that name."""
    return name in spark_functions() or name in _SYNTAX


def is_foreign(name: str) -> bool:
    """Whether sqlglot knows a name that Spark lacks as a function of another engine.

    >>> is_foreign("safe_cast"), is_foreign("t")
    (True, False)
    """
    parsers = dialect().parser_class.FUNCTION_PARSERS
    read = name.upper() in exp.FUNCTION_BY_NAME or name.upper() in parsers
    return read and not is_known(name.lower())


def aggregates(node: exp.Expr) -> bool:
    """Whether an expression contains an aggregate of its own SELECT."""
    return any(map(is_group_aggregate, node.walk(prune=lambda one: isinstance(one, exp.Query))))


def window_of(call: exp.Expr) -> exp.Window | None:
    """The window over which a function is called; a call in its PARTITION BY is none of it."""
    node = call
    while isinstance(node.parent, WRAPPERS):
        node = node.parent
    around = node.parent
    return around if isinstance(around, exp.Window) and node.arg_key == "this" else None


def bare_columns(part: exp.Expr) -> Iterator[exp.Column]:
    """Columns outside of aggregates and of subqueries."""

    def prune(node: exp.Expr) -> bool:
        return is_group_aggregate(node) or isinstance(node, exp.Query)

    for node in part.walk(prune=prune):
        if isinstance(node, exp.Column):
            # FILTER encloses the aggregate in the tree.
            around = node.find_ancestor(exp.Filter, exp.WithinGroup)
            if around is None:
                yield node


def looks_up(node: exp.Expr) -> bool:
    """Whether an expression has a function that Spark finds by its name, or a BETWEEN.

    Such an expression is not resolved at once, and Spark does not find it among groups then.
    """
    for one in node.walk(prune=lambda inner: isinstance(inner, exp.Query)):
        called = isinstance(one, exp.Func) and called_name(one) not in _OPERATORS
        chosen = isinstance(one, exp.If) and not isinstance(one.parent, exp.Case)
        if called or chosen or isinstance(one, exp.Between | exp.Extract):
            return True
    return False


def is_aggregate(node: exp.Func) -> bool:
    """Whether a function without OVER is an aggregate."""
    name = called_name(node)
    kind = "aggregate" if name in _AGGREGATES_TOO else spark_functions().get(name)
    return kind == "aggregate" if kind else isinstance(node, exp.AggFunc)


def is_group_aggregate(node: exp.Expr) -> TypeIs[exp.Func]:
    """Whether a node is an aggregate over a group, not over a window."""
    return isinstance(node, exp.Func) and is_aggregate(node) and window_of(node) is None


def generates(node: exp.Expr) -> bool:
    """Whether an expression may return several rows for one."""
    return any(called_name(one) in _MULTIPLIERS for one in node.find_all(exp.Func))


def reads_clock(tree: exp.Expr) -> bool:
    """Whether the query's result depends on when it runs."""
    clock = (
        exp.CurrentTimestamp,
        exp.CurrentDate,
        exp.CurrentTime,
        exp.CurrentDatetime,
        exp.Localtimestamp,
    )
    for node in tree.find_all(exp.Func):
        name = called_name(node)
        if isinstance(node, clock) or (name in CLOCK and _no_arguments(node, name)):
            return True
    return False


def _no_arguments(node: exp.Func, name: str) -> bool:
    """``unix_timestamp(x)`` converts; without an argument it reads the clock."""
    return name != "unix_timestamp" or not any(node.iter_expressions())
