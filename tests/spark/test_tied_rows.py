"""Which of several tied rows comes first does not depend on where the rows are stored."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from tests.spark.gold_project import GoldProject

pytestmark = pytest.mark.usefixtures("each_engine")

STATES = "SELECT * FROM VALUES {} AS v(order_id, state, day, place)"
LAST = "(PARTITION BY o.order_id ORDER BY o.day DESC)"
VIEWS = {
    # Of the last states of the orders, how many there are of each.
    "counted": "SELECT r.state, COUNT(*) AS orders FROM (SELECT o.state, "
    f"ROW_NUMBER() OVER {LAST} AS n FROM silver.states AS o) AS r WHERE r.n = 1 GROUP BY r.state",
    "greatest": "SELECT r.state, COUNT(*) AS orders FROM (SELECT o.order_id, "
    "MAX_BY(o.state, o.day) AS state FROM silver.states AS o GROUP BY o.order_id) AS r "
    "GROUP BY r.state",
    "lists": "SELECT r.states, COUNT(*) AS orders FROM (SELECT o.order_id, LISTAGG(o.state, ',') "
    "WITHIN GROUP (ORDER BY o.day DESC) AS states FROM silver.states AS o GROUP BY o.order_id) "
    "AS r GROUP BY r.states",
    "last": "SELECT o.place, o.order_id FROM silver.states AS o "
    f"QUALIFY ROW_NUMBER() OVER {LAST} = 1",
    "first": "SELECT r.state, COUNT(*) AS orders FROM (SELECT o.state FROM silver.states AS o "
    "ORDER BY o.day DESC LIMIT 2) AS r GROUP BY r.state",
}


def test_a_change_after_the_rows_were_moved_finds_the_row_that_was_chosen(
    gold: GoldProject,
) -> None:
    gold.append("silver.states", STATES.format("(1, 'open', 5, 9), (1, 'paid', 5, 8)"))
    gold.append("silver.states", STATES.format("(2, 'sent', 5, 7), (2, 'back', 5, 6)"))
    for view, query in VIEWS.items():
        gold.view(
            view,
            query,
            inputs=("silver.states",),
            maintained=True,
            grain=("place",) if view == "last" else (),
        )
        gold.refresh(view, "t1")
    for tick, order, more in (
        ("t2", "place", "(1, 'void', 6, 1)"),
        ("t3", "day", "(2, 'x', 6, 2)"),
    ):
        DeltaTable(gold.location("silver.states")).optimize.z_order([order])
        gold.append("silver.states", STATES.format(more))
        for view in VIEWS:
            gold.refresh(view, tick)
            gold.assert_right(view)
    assert gold.rows("counted") == gold.rows("greatest") == [("void", 1), ("x", 1)]
    assert gold.rows("lists") == [("void,open,paid", 1), ("x,back,sent", 1)]
    assert gold.rows("last") == [(1, 1), (2, 2)]
