"""Obstacles: codes for why a query has no incremental rule."""

from __future__ import annotations

from enum import StrEnum

from sqlglot import exp


class Obstacle(StrEnum):
    """What prevents incremental maintenance."""

    UNSUPPORTED_CLAUSE = "UNSUPPORTED_CLAUSE"
    UNSUPPORTED_RELATION = "UNSUPPORTED_RELATION"
    UNSUPPORTED_SUBQUERY = "UNSUPPORTED_SUBQUERY"
    UNRESOLVED_COLUMN = "UNRESOLVED_COLUMN"
    CLOCK_OUTSIDE_WHERE = "CLOCK_OUTSIDE_WHERE"
    ORDER_DEPENDENT = "ORDER_DEPENDENT"
    DEPENDS_ON_EVERY_ROW = "DEPENDS_ON_EVERY_ROW"
    INCOMPARABLE_TYPE = "INCOMPARABLE_TYPE"


_SUGGESTIONS = {
    Obstacle.UNSUPPORTED_CLAUSE: "Write it with joins, aggregates, window functions or unions.",
    Obstacle.UNSUPPORTED_RELATION: "Read tables, subqueries and common table expressions.",
    Obstacle.UNSUPPORTED_SUBQUERY: "Write it as a join, or correlate it by equality only.",
    Obstacle.UNRESOLVED_COLUMN: "Name the table of the column.",
    Obstacle.CLOCK_OUTSIDE_WHERE: "Compare with the clock in WHERE only.",
    Obstacle.ORDER_DEPENDENT: "Give it an order: ARRAY_SORT(COLLECT_LIST(x)), MIN_BY(x, y) for "
    "FIRST(x), LISTAGG(x) WITHIN GROUP (ORDER BY x).",
    Obstacle.INCOMPARABLE_TYPE: "Take the parts that the view needs out of it in silver.",
    Obstacle.DEPENDS_ON_EVERY_ROW: "Give it groups: GROUP BY, or PARTITION BY in the window.",
}


class NotIncrementalError(Exception):
    """A query that can only be refreshed in full.

    Attributes:
        obstacle: the code.
        text: the obstacle, for users.
        node: its place in the query, if known.
    """

    def __init__(self, obstacle: Obstacle, text: str, node: exp.Expr | None = None) -> None:
        self.obstacle = obstacle
        self.text = text
        self.node = node
        super().__init__(f"{obstacle}: {text}")

    @property
    def suggestion(self) -> str:
        """What the author can do."""
        return _SUGGESTIONS[self.obstacle]
