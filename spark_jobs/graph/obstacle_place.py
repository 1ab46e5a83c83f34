"""Locates in a view's file what prevents its incremental maintenance."""

from __future__ import annotations

from sqlglot import exp

from spark_jobs.errors import Location
from spark_jobs.graph.dialect import dialect, to_sql
from spark_jobs.graph.functions import is_aggregate
from spark_jobs.graph.maintenance.program import check_clock
from spark_jobs.graph.maintenance.query import build
from spark_jobs.graph.maintenance.reasons import NotIncrementalError, Obstacle
from spark_jobs.graph.manifest import GoldEntry
from spark_jobs.graph.parsing import in_file


def obstacle_place(entry: GoldEntry, text: str) -> Location:
    """The location of what prevents incremental maintenance.

    Args:
        entry: a view with a maintenance obstacle.
        text: text of its file.

    Returns:
        the operator's location; that of the first word if the operator is unknown; only the file if
            the text has another definition.
    """
    source = in_file(entry.sql, file=entry.file, text=text)
    if source is None:
        return Location(entry.file)
    tree = dialect().parse(source.text)[0]
    found = None if tree is None else _found(entry, tree)
    return source.first() if found is None else source.of(found)


def _found(entry: GoldEntry, tree: exp.Expr) -> exp.Expr | None:
    try:
        root, _ = build(entry.query)
        check_clock(root)
    except NotIncrementalError as error:
        return None if error.node is None else _matching_node(error.node, tree)
    found = entry.maintenance
    if found is not None and found.obstacle == Obstacle.DEPENDS_ON_EVERY_ROW:
        return _over_everything(found.detail or "", tree)
    return None


def _matching_node(node: exp.Expr, tree: exp.Expr) -> exp.Expr | None:
    """The node in the author's text for one of the canonical query."""
    same = list(tree.find_all(type(node)))
    wanted = _plain(node)
    return next((one for one in same if _plain(one) == wanted), same[0] if same else None)


def _plain(node: exp.Expr) -> str:
    copy = node.copy()
    for column in copy.find_all(exp.Column):
        column.set("table", None)
        column.set("db", None)
    for name in copy.find_all(exp.Identifier):
        name.set("quoted", None)
    return to_sql(copy).lower()


def _over_everything(detail: str, tree: exp.Expr) -> exp.Expr | None:
    """The operator named in the detail, whose rows all depend on each other."""
    words = detail.lower()
    if "window" in words:
        windows = tree.find_all(exp.Window)
        return next((one for one in windows if not one.args.get("partition_by")), None)
    if "limit" in words:
        return tree.find(exp.Limit, exp.Offset)
    for select in tree.find_all(exp.Select):
        calls = (one for each in select.selects for one in each.find_all(exp.Func))
        found = next((one for one in calls if is_aggregate(one)), None)
        if found is not None and not select.args.get("group"):
            return found
    return None
