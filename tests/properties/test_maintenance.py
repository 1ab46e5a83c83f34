"""Maintained equals computed again: random queries, random multisets, random changes."""

from __future__ import annotations

import pytest

from tests.properties.engine import Engine
from tests.properties.histories import Yield, run
from tests.properties.seeds import CHUNKS, seeds

# Of the steps, so many change the view's rows, and so many take rows from it, at least; a change
# that moves nothing proves little.
LEAST_MOVED, LEAST_LOST = 0.8, 0.3
# Of the queries; what has no rule is tested in ``test_rules``.
MOST_REFUSED = 0.05


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_maintained_view_equals_its_sql(chunk: int) -> None:
    engine, found = Engine(), Yield()
    for seed in seeds(chunk, 80):
        found.add(run(engine, seed))
    print(found)
    assert found.moved >= LEAST_MOVED * found.cases, str(found)
    assert found.lost >= LEAST_LOST * found.cases, str(found)
    assert found.refused <= MOST_REFUSED * found.queries, str(found)
