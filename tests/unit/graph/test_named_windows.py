"""A WINDOW clause says the same as OVER (...)."""

from __future__ import annotations

import pytest

from spark_jobs.graph.dialect import parse, to_sql
from spark_jobs.graph.named_windows import with_windows_in_place

RANK = "SELECT a, RANK() OVER {} AS r FROM t {}"
PLACE = "(PARTITION BY b ORDER BY c)"
SAME = {
    RANK.format("w", f"WINDOW w AS {PLACE}"): RANK.format(PLACE, ""),
    RANK.format("(W)", f"WINDOW w AS {PLACE} LIMIT 1"): RANK.format(PLACE, "LIMIT 1"),
    RANK.format("v", f"WINDOW v AS w, w AS {PLACE}"): RANK.format(PLACE, ""),
    RANK.format("w + 1", f"WINDOW x AS (), w AS {PLACE}"): RANK.format(f"{PLACE} + 1", ""),
    "SELECT a FROM t WINDOW w AS () QUALIFY SUM(a) OVER w > 1": (
        "SELECT a FROM t QUALIFY SUM(a) OVER () > 1"
    ),
    # A subquery has names of its own.
    "SELECT SUM(a) OVER w, (SELECT MAX(b) OVER w FROM u WINDOW w AS ()) FROM t WINDOW w AS "
    + PLACE: f"SELECT SUM(a) OVER {PLACE}, (SELECT MAX(b) OVER () FROM u) FROM t",
    # These Spark refuses.
    RANK.format("u", f"WINDOW u AS v, v AS w, w AS {PLACE}"): RANK.format("u", ""),
    RANK.format("w", "WINDOW w AS (), w AS ()"): RANK.format("w", "WINDOW w AS (), w AS ()"),
}


@pytest.mark.parametrize("written", SAME)
def test_a_named_window_is_put_in_place(written: str) -> None:
    assert to_sql(with_windows_in_place(parse(written))) == to_sql(parse(SAME[written]))
