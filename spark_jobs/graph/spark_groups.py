"""Writes groups so that Spark takes the canonical query as it takes the text.

Only queries that Spark would refuse otherwise are changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from sqlglot import exp

from spark_jobs.graph.clause_checks import grouping_calls, has_sets
from spark_jobs.graph.functions import aggregates, is_group_aggregate, looks_up
from spark_jobs.graph.group_checks import grouping_expressions

# What is a call in Spark, or is written as one.
_CALLS = (exp.Func, exp.BitwiseLeftShift, exp.BitwiseRightShift)
_AFTER_GROUPS = ("having", "qualify", "order")


def suit_groups(query: exp.Query) -> None:
    """Change the groups of a canonical query in place.

    Args:
        query: qualified, with types.
    """
    for select in query.find_all(exp.Select):
        group = select.args.get("group")
        _name_outputs(select)
        if group is not None and has_sets(select):
            _bare_outputs(select)
        if group is not None:
            _use_written_days(select, grouping_expressions(group))


def _name_outputs(select: exp.Select) -> None:
    """Refer to outputs by name in HAVING and QUALIFY, where Spark takes no such expression.

    In HAVING it does not take GROUPING. Over sets of groups it finds only outputs there, beside an
    aggregate or another call, and where it adds a cast. In QUALIFY it takes no aggregate, not even
    within a window, but GROUPING of a column that has no other name; and it does not find the
    grouping expression in a call.
    """
    having, qualify = select.args.get("having"), select.args.get("qualify")
    group = select.args.get("group")
    aliases = [one for one in select.expressions if isinstance(one, exp.Alias)]
    # Spark takes such a name for the column that is grouped by.
    grouped = {one.name.lower() for one in group.find_all(exp.Column)} if group else set()
    names = {
        one.this: one.args["alias"]
        for one in aliases
        if one.alias.lower() not in grouped or one.alias == _column_name(one.this)
    }
    groups = grouping_expressions(group) if group else []
    bare = {one.name.lower() for one in groups if isinstance(one, exp.Column)}
    calls_of_groups = {one for one in groups if one.find(*_CALLS) and one.find(exp.Column)}
    in_qualify = names | {
        one.this: one.args["alias"] for one in aliases if one.alias.lower() not in bare
    }
    renamed = {one.this for one in aliases}
    beside = cast = False
    if having is not None and has_sets(select):
        beside = aggregates(having.this) or looks_up(having.this)
        cast = any(_adds_cast(one) for one in having.this.walk())

    def unknown_in_having(node: exp.Expr) -> bool:
        plain = not aggregates(node) and node.find(exp.Column) is not None
        return any(grouping_calls(node, select)) or ((beside or cast) and plain)

    def refused_in_qualify(node: exp.Expr) -> bool:
        calls = [*grouping_calls(node, select)]
        hidden = any(renamed & set(one.find_all(exp.Column)) for one in calls)
        found = any(is_group_aggregate(one) and one not in calls for one in node.find_all(exp.Func))
        return hidden or found or not calls_of_groups.isdisjoint(node.walk())

    if having is not None:
        in_having = {one.this: one.args["alias"] for one in aliases} if beside else names
        _name_output(having.this, in_having, unknown_in_having)
    if qualify is not None:
        _name_output(qualify.this, in_qualify, refused_in_qualify)


def _adds_cast(node: exp.Expr) -> bool:
    """Whether the sides of an operator may have different types for Spark."""
    sides = [node.left, node.right] if isinstance(node, exp.Binary) else []
    if isinstance(node, exp.In):
        sides = [node.this, *node.expressions]
    kinds = {one.type for one in sides}
    return len(kinds) > 1 or any(kind is None or kind.is_type("unknown") for kind in kinds)


def _name_output(
    node: exp.Expr,
    names: Mapping[exp.Expr, exp.Identifier],
    refused: Callable[[exp.Expr], bool],
) -> None:
    """Replace the outermost nodes that equal an output, if they are refused."""
    if (name := names.get(node)) is not None and refused(node):
        node.replace(exp.Column(this=name.copy()))
    elif not isinstance(node, exp.Query) and not is_group_aggregate(node):
        for one in list(node.iter_expressions()):
            _name_output(one, names, refused)


def _column_name(node: exp.Expr) -> str:
    return node.name if isinstance(node, exp.Column) else ""


def _bare_outputs(select: exp.Select) -> None:
    """Remove the alias of ``t.a AS a`` that was not written, where GROUPING(t.a) follows.

    Behind an alias, Spark does not find the column that is grouped by.
    """
    marked = {
        one
        for clause in _AFTER_GROUPS
        if (part := select.args.get(clause)) is not None
        for call in grouping_calls(part, select)
        for one in call.find_all(exp.Column)
    }
    for output in list(select.expressions):
        written = isinstance(output, exp.Alias) and output.args["alias"].meta.get("start")
        if output.this in marked and written is None and output.alias == output.this.name:
            output.replace(output.this)


def _use_written_days(select: exp.Select, groups: list[exp.Expr]) -> None:
    """Write DATE_SUB(day, 1) beside GROUP BY day - 1 as the latter, and the other way around.

    They are equal for Spark, but sqlglot's form of the former is another expression.
    """
    twins = {twin: one for one in groups if (twin := _other_form(one)) is not None}
    if not twins.keys() - set(groups):
        return
    clauses = (select.args.get(clause) for clause in _AFTER_GROUPS)
    for part in (*select.expressions, *(one for one in clauses if one is not None)):
        for node in list(_outside_groups(part, groups)):
            if node in twins and any(one not in groups for one in node.find_all(exp.Column)):
                node.replace(twins[node].copy())


def _outside_groups(part: exp.Expr, groups: list[exp.Expr]) -> Iterator[exp.Expr]:
    """The nodes that are no part of an aggregate, a subquery or a grouping expression."""

    def prune(node: exp.Expr) -> bool:
        called = isinstance(node, exp.Func) and aggregates(node)
        return node in groups or called or isinstance(node, exp.Query)

    return (node for node in part.walk(prune=prune) if isinstance(node, exp.Sub | exp.TsOrDsAdd))


def _other_form(node: exp.Expr) -> exp.Expr | None:
    """``day - n`` for DATE_SUB(day, n), and the other way around; None for all else."""
    if not isinstance(node, exp.Sub | exp.TsOrDsAdd) or not node.this.is_type(exp.DType.DATE):
        return None
    days = node.expression
    minus = exp.Neg(this=exp.Literal.number(1))
    if isinstance(node, exp.Sub):
        negative = exp.Mul(this=days.copy(), expression=minus)
        return exp.TsOrDsAdd(this=node.this.copy(), expression=negative, unit=exp.var("DAY"))
    if isinstance(days, exp.Mul) and days.expression == minus:
        return exp.Sub(this=node.this.copy(), expression=days.this.copy())
    return None
