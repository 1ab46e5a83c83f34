"""Where the values of a key are: in few intervals, and by the log's statistics in which files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.graph.type_agreement import bounded

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# Each costs a comparison for each row that is read; they only help where keys lie close together.
# Powers of two, because each number of intervals is code of its own in Spark.
INTERVALS: Final = (8, 4, 2, 1)


def intervals(numbers: npt.NDArray[np.int64]) -> list[list[int]]:
    """The numbers in few intervals: between them are the largest gaps.

    >>> import numpy as np
    >>> intervals(np.array([7, 1, 2, 3, 900]))
    [[1, 2, 3, 7], [900]]

    Args:
        numbers: in any order, with duplicates.

    Returns:
        the numbers of each interval, in order, without duplicates.
    """
    import numpy as np  # noqa: PLC0415

    ordered = np.unique(numbers)
    if not len(ordered):
        return []
    gaps = np.diff(ordered)
    count = next(one for one in INTERVALS if one <= 1 + np.count_nonzero(gaps > 1))
    ends = np.sort(np.argsort(gaps, kind="stable")[len(gaps) - count + 1 :])
    return [part.tolist() for part in np.split(ordered, ends + 1)]


def whole_keys(rows: pa.Table, keys: Iterable[str]) -> pa.Table:
    """The key columns of whole numbers without NULL, by which delta-rs skips files.

    >>> whole_keys(pa.table({"a": [1], "b": ["x"], "c": [None]}), ["a", "b"]).column_names
    ['a']
    """
    kinds = {one.name: one.type for one in rows.schema}
    whole = [one for one in keys if pa.types.is_integer(kinds[one])]
    return rows.select([one for one in whole if not rows.column(one).null_count])


def ranges_of(values: pa.Array | pa.ChunkedArray) -> list[tuple[int, int]] | None:
    """The first and the last value of each interval that has some, as numbers.

    >>> ranges_of(pa.array([7, 1, 2, 3, 900]))
    [(1, 7), (900, 900)]

    Returns:
        None if a value is NULL, or statistics do not bound values of this type.
    """
    if values.null_count or not bounded([values.type]):
        return None
    numbers = as_numbers(values).to_numpy(zero_copy_only=False)
    return [(part[0], part[-1]) for part in intervals(numbers)]


def files_in_reach(files: pa.Table, keys: pa.Table) -> pa.Table:
    """The files that may contain one of the keys, and possibly others, by the log's statistics.

    Args:
        files: as ``storage.log.files`` returns them.
        keys: a column for each key column.
    """
    reach = pa.chunked_array([[True] * files.num_rows], pa.bool_())
    for name in keys.column_names:
        bounds = [f"min.{name}", f"max.{name}"]
        ranges = ranges_of(keys.column(name))
        if ranges is None or not set(bounds) <= set(files.column_names):
            continue
        low, high = (files.column(one) for one in bounds)
        # If no file has statistics, the column has no type.
        if pa.types.is_null(low.type) or low.type == keys.column(name).type:
            reach = pc.and_(reach, may_have(as_numbers(low), as_numbers(high), ranges))
    return files.filter(reach)


def may_have(
    low: pa.ChunkedArray, high: pa.ChunkedArray, ranges: Iterable[Sequence[int]]
) -> pa.ChunkedArray:
    """For each file, whether it may have a value in one of the ranges.

    Args:
        low: the smallest value of each file as a number; NULL if it is unknown.
        high: the largest one, likewise.
        ranges: the first and the last number of each.
    """
    found = pa.chunked_array([[False] * len(low)], pa.bool_())
    for first, last in ranges:
        inside = pc.and_(pc.less_equal(low, last), pc.greater_equal(high, first))
        # A file without statistics may have any value.
        found = pc.or_(found, pc.fill_null(inside, fill_value=True))
    return found


def as_numbers(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whole numbers, dates or times as numbers: days of dates, microseconds of times."""
    if pa.types.is_date(values.type):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64())
    return values.cast(pa.int64())
