"""Where work is done: every amount has to fit, and an unknown one does not."""

from __future__ import annotations

import pytest

from spark_jobs.storage import policy
from spark_jobs.storage.policy import Limit, Place


@pytest.mark.parametrize(
    ("amounts", "place"),
    [
        ({"rows": 10, "size": 20, "files": 30}, Place.LOCAL),
        ({"rows": 11}, Place.SPARK),
        ({"size": 21}, Place.SPARK),
        ({"files": 31}, Place.SPARK),
        ({"rows": 10, "size": 21}, Place.SPARK),
        ({"rows": None}, Place.SPARK),
        ({}, Place.LOCAL),
    ],
)
def test_work_is_local_where_every_amount_fits(
    amounts: dict[str, int | None], place: Place
) -> None:
    limit = Limit(rows=10, bytes=20, files=30)
    assert limit.place(**amounts) is place
    assert limit.fits(**amounts) is (place is Place.LOCAL)


def test_an_amount_without_a_limit_does_not_matter() -> None:
    assert Limit(rows=1).fits(rows=1, size=None, files=10**9)


@pytest.mark.parametrize(
    ("rows", "layers", "changed", "appended"),
    [
        (20_001, 0, 0, True),
        (20_000, 0, 0, False),
        (80_001, 0, 20_000, True),
        (80_000, 0, 20_000, False),
        (80_001, 19, 1, True),
        (80_001, 20, 1, False),
        (80_001, None, 1, False),
        (80_001, 0, None, False),
    ],
)
def test_state_is_appended_to_while_it_is_large_and_has_few_layers(
    *, rows: int, layers: int | None, changed: int | None, appended: bool
) -> None:
    assert policy.state_is_appended(rows=rows, layers=layers, changed=changed) is appended


def test_no_more_small_files_are_awaited_than_are_looked_into() -> None:
    assert policy.small_file_limit(20) == 20
    assert policy.small_file_limit(100) == policy.FOOTERS.files
