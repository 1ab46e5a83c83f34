"""The canonical form of a query, and the fingerprint of a definition."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.optimizer.qualify_tables import qualify_tables

from spark_jobs.graph.dialect import dialect, to_sql
from spark_jobs.graph.functions import aggregates
from spark_jobs.graph.inference import common_type, spark_type
from spark_jobs.graph.manifest import Column
from spark_jobs.graph.resolve import UNNAMED
from spark_jobs.graph.spark_groups import suit_groups


def canonical_query(tree: exp.Query, resolved: exp.Query) -> exp.Query:
    """The qualified query, with GROUP BY ALL and ORDER BY ALL expanded, and outputs as named."""
    query = resolved.copy()
    for order in query.find_all(exp.Order):
        expand_order_by_all(order)
    for select in query.find_all(exp.Select):
        expand_group_by_all(select)
        _unname_generators(select)
    suit_groups(query)
    for one, written in zip(query.selects, tree.selects, strict=True):
        if isinstance(one, exp.Alias):
            one.set("alias", exp.to_identifier(written.output_name))
        elif isinstance(one, exp.Column) and one.name == written.output_name.lower():
            one.this.set("this", written.output_name)
    return query


def _unname_generators(select: exp.Select) -> None:
    """Remove the aliases that qualifying gave to generators: the types give them their names."""
    for at, output in enumerate(list(select.expressions)):
        added = isinstance(output, exp.Alias) and output.alias == f"_col_{at}"
        if added and output.this.meta.get(UNNAMED):
            output.replace(output.this)


def expand_order_by_all(order: exp.Order) -> None:
    """Replace ORDER BY ALL by the positions of all outputs."""
    query, terms = order.parent, order.expressions
    if not isinstance(query, exp.Query) or [one.this for one in terms] != [exp.var("ALL")]:
        return
    positions = [terms[0].copy() for _ in query.selects]
    for at, term in enumerate(positions, start=1):
        term.set("this", exp.Literal.number(at))
    order.set("expressions", positions)


def expand_group_by_all(select: exp.Select) -> None:
    """Replace GROUP BY ALL by the output expressions without an aggregate.

    If there are none, all rows are one group, also no rows. If these contain no column it stays:
    grouping by constants returns no row for an empty input, which no list of expressions expresses.
    """
    group = select.args.get("group")
    if group is None or not group.args.get("all") or group.expressions:
        return
    keys = [one.unalias().copy() for one in select.selects if not aggregates(one)]
    if not keys:
        select.set("group", None)
    keys = [key for key in keys if key.find(exp.Column)]
    if keys:
        group.set("all", None)
        group.set("expressions", keys)


def output_columns(tree: exp.Query, resolved: exp.Query) -> tuple[Column, ...]:
    """The output columns: names as written, types if known, comments as descriptions."""
    reader = dialect()
    # sqlglot's types of generator outputs differ from Spark's.
    generated = resolved.find(exp.Lateral) is not None
    return tuple(
        Column(
            name=written.output_name,
            type=""
            if generated and not isinstance(one.unalias(), exp.Cast)
            else _type_at(resolved, at, reader),
            description=_comment(written),
        )
        for at, (written, one) in enumerate(zip(tree.selects, resolved.selects, strict=True))
    )


def _type_at(query: exp.Expr, at: int, reader: Dialect) -> str:
    """The type of an output; "" if only Spark knows it."""
    kinds = set(_types_at(query, at))
    output = exp.null()
    output.type = common_type(kinds) if kinds else exp.DType.UNKNOWN
    return spark_type(output, reader)


def _types_at(query: exp.Expr, at: int) -> Iterator[exp.DataType]:
    """The types of a column in all parts of a set operation, without those that are only NULL."""
    query = query.unnest()
    if isinstance(query, exp.SetOperation):
        yield from _types_at(query.left, at)
        yield from _types_at(query.right, at)
    elif isinstance(query, exp.Query):
        kind = query.selects[at].type or exp.DataType.build("unknown")
        if not kind.is_type(exp.DType.NULL):
            yield kind


def _comment(node: exp.Expr) -> str | None:
    nodes = {id(one): one for one in (node, node.unalias())}
    texts = [text for one in nodes.values() for text in one.comments or ()]
    return " ".join(" ".join(texts).split()) or None


def fingerprint_of(query: str, inputs: Mapping[str, Mapping[str, str]], *more: str) -> str:
    """A digest that changes when the meaning of a definition changes.

    Args:
        query: the canonical query.
        inputs: types of the columns that it reads, by ``layer.name`` and column.
        more: whatever else changes the result.
    """
    text = json.dumps([query, {key: dict(inputs[key]) for key in sorted(inputs)}, more])
    return hashlib.sha256(text.encode()).hexdigest()


def without_aliases(query: exp.Query) -> str:
    """A canonical query with numbered table aliases: their names have no meaning."""
    named = qualify_tables(query.copy(), canonicalize_table_aliases=True, dialect=dialect())
    return to_sql(named, copy=False)
