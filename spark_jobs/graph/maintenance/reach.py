"""Upper limits of the rows of a view that a change deletes and inserts, from its SQL alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from spark_jobs.graph.maintenance.algebra import (
    Aggregate,
    Constant,
    Filter,
    LeftJoin,
    Node,
    Project,
    Scan,
    Side,
    TopK,
    Union,
    children,
)
from spark_jobs.graph.maintenance.query import build
from spark_jobs.graph.maintenance.reasons import NotIncrementalError


@dataclass(frozen=True)
class RowsMoved:
    """Rows deleted from a table (``leave``) and inserted (``enter``); an update counts as both."""

    leave: int
    enter: int

    @property
    def total(self) -> int:
        return self.leave + self.enter

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object with the keys ``leave`` and ``enter``."""
        return {"leave": self.leave, "enter": self.enter}


NO_ROWS = RowsMoved(0, 0)


def reach(query: str, moved: Mapping[str, RowsMoved | None]) -> RowsMoved | None:
    """Upper limits of the deleted and inserted rows of a view; None if its SQL sets no limit.

    Args:
        query: qualified Spark SQL, as in ``GoldEntry.query``.
        moved: changes of its inputs, by ``layer.name``. A missing table is unchanged; None: changed
            by an unknown number of rows.
    """
    try:
        root, _ = build(query)
    except NotIncrementalError:
        return None
    return _reach(root, moved)


def _reach(  # noqa: PLR0911 - one case for each operator
    node: Node, moved: Mapping[str, RowsMoved | None]
) -> RowsMoved | None:
    below = [_reach(child, moved) for child in children(node)]
    if below and all(one == NO_ROWS for one in below):
        return NO_ROWS
    match node:
        case Scan():
            return moved.get(node.table, NO_ROWS)
        case Constant():
            return NO_ROWS
        case Filter():
            return below[0]
        case Project():
            return None if node.multiplies else below[0]
        case Aggregate():
            # Each row is in one group, and each group has one row before and one after.
            groups = 1 if not node.keys else None if below[0] is None else below[0].total
            return None if groups is None or node.sessions else RowsMoved(groups, groups)
        case Union():
            known = [one for one in below if one is not None]
            whole = len(known) == len(below)
            return (
                RowsMoved(sum(k.leave for k in known), sum(k.enter for k in known))
                if whole
                else None
            )
        case LeftJoin():
            # While the right side is unchanged, left rows do not affect each other.
            return below[0] if node.side is not Side.OUTER and below[1] == NO_ROWS else None
        case TopK():
            limit = node.limit
            rows = int(limit.name) if isinstance(limit, exp.Literal) and limit.is_int else None
            return None if rows is None else RowsMoved(rows, rows)
        case _:
            return None
