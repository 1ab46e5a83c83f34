"""The condition of the last records of a bronze table."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import pyarrow.compute as pc

from spark_jobs.names import BronzeColumn

# How many offsets to look back: the last ones may be transaction markers.
LOOKED_BACK = 16


def near(read_to: Mapping[int, int]) -> pc.Expression | None:
    """The condition of records shortly before an offset of each partition; None if there is none.

    Args:
        read_to: the next offset to read, by partition.
    """
    partition, offset = pc.field(BronzeColumn.PARTITION), pc.field(BronzeColumn.OFFSET)
    found = [
        (partition == part) & (offset >= to - LOOKED_BACK) & (offset < to)
        for part, to in read_to.items()
        if to > 0
    ]
    return reduce(lambda one, other: one | other, found) if found else None
