"""Much is taken away only where a person lets it pass."""

from __future__ import annotations

import pytest

from spark_jobs.planning.errors import DeletionTooLargeError
from spark_jobs.planning.extent import Extent


@pytest.mark.parametrize(
    ("rows", "among", "large"),
    [
        pytest.param(100, 100, False, id="few rows, all of them"),
        pytest.param(101, 101, True, id="one more than few"),
        pytest.param(500, 10_000, False, id="many rows, a small share"),
        pytest.param(501, 10_000, True, id="a larger share"),
        pytest.param(0, 0, False, id="nothing"),
    ],
)
def test_an_extent_is_large_by_rows_and_share(rows: int, among: int, *, large: bool) -> None:
    extent = Extent("silver.orders", rows, among)
    extent.check(let_pass=True)
    if not large:
        extent.check(let_pass=False)
        return
    with pytest.raises(DeletionTooLargeError) as caught:
        extent.check(let_pass=False)
    assert (caught.value.rows, caught.value.among) == (rows, among)
