"""The values of steps whose rows are in this process, as intervals for runtime filters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.graph.runtime_filters import Needed, Values, text_of
from spark_jobs.storage.key_ranges import as_numbers, intervals, may_have

# Spark's code looks up values of a longer list in a set, which is not part of the code.
_SHORT_LIST: Final = 10
# More values are longer to parse than to compile.
_LONGEST_LIST: Final = 2_000
_MOST: Final = {"tinyint": 2**7 - 1, "smallint": 2**15 - 1, "int": 2**31 - 1, "bigint": 2**63 - 1}
_TIMES: Final = ("timestamp", "timestamp_ntz")
_IS: Final = {
    **dict.fromkeys(_MOST, pa.types.is_integer),
    "date": pa.types.is_date,
    "timestamp": lambda kind: pa.types.is_timestamp(kind) and kind.tz is not None,
    "timestamp_ntz": lambda kind: pa.types.is_timestamp(kind) and kind.tz is None,
}
_MILLISECOND: Final = 1_000
# Of the range of values in a table, the part that may be looked for.
_SHARE: Final = 0.5


class StepValues:
    """Rows of computed steps and files of large tables by name, looked at when they are needed."""

    def __init__(self) -> None:
        self._rows: dict[str, tuple[pa.Table, Mapping[str, str]]] = {}
        self._values: dict[tuple[str, str], Values | None] = {}
        self._files: dict[str, Callable[[], pa.Table]] = {}
        self._ranges: dict[tuple[str, str], tuple[int, int] | None] = {}

    def add_table(self, name: str, files: Callable[[], pa.Table]) -> None:
        """Keep a table that is worth a filter.

        Args:
            name: the table's.
            files: returns its files as ``storage.log.files`` does.
        """
        self._files[name] = cache(files)

    def add(self, name: str, rows: pa.Table, kinds: Mapping[str, str]) -> None:
        """Keep the rows of a step.

        Args:
            name: the step's.
            rows: all of them.
            kinds: Spark SQL types by column.
        """
        self._rows[name] = rows, {column.lower(): kind for column, kind in kinds.items()}

    def columns(self, relation: str) -> Sequence[str] | None:
        """The lower-case names of a step's columns; None if its rows were not kept."""
        found = self._rows.get(relation)
        return None if found is None else list(found[1])

    def values(self, relation: str, column: str) -> Values | None:
        """The values of a step's column; None for types whose values are not close or far."""
        if (relation, column) not in self._values:
            self._values[relation, column] = self._look(relation, column)
        return self._values[relation, column]

    def skips(self, relation: str, column: str, values: Values) -> bool:
        """Whether the values are in a small part of the range of a large table's column."""
        if (relation, column) not in self._ranges:
            files = self._files.get(relation)
            self._ranges[relation, column] = files and _range(files(), column, values.kind)
        found = self._ranges[relation, column]
        looked_for = sum(1 + last - first for first, last in values.intervals)
        return found is not None and looked_for <= _SHARE * (1 + found[1] - found[0])

    def files(self, relation: str, needed: Needed) -> pa.Table | None:
        """The files of a table that may have needed rows, by the log's statistics.

        Args:
            relation: the table's name.
            needed: as ``needed_values`` returns it.

        Returns:
            rows of ``storage.log.files``; None if the table is none of those that were added.
        """
        if relation not in self._files:
            return None
        files = self._files[relation]()
        some = _all(files, holds=False)
        for values in needed:
            every = _all(files, holds=True)
            for column, one in values.items():
                every = pc.and_(every, _may_have(files, column, one))
            some = pc.or_(some, every)
        return files.filter(some)

    def _look(self, relation: str, column: str) -> Values | None:
        if relation not in self._rows:
            return None
        rows, kinds = self._rows[relation]
        at = next((i for i, one in enumerate(kinds) if one == column), None)
        if at is None or kinds[column] not in _IS:
            return None
        kind, values = kinds[column], rows.column(at)
        parts = intervals(as_numbers(pc.drop_null(values)).to_numpy())
        found = [(part[0], part[-1]) for part in parts]
        try:
            for bound in (one for pair in found for one in pair):
                text_of(bound, kind)
        except OverflowError:
            return None
        few = kind in _MOST and sum(map(len, parts)) <= _LONGEST_LIST
        lists = [_long(part, _MOST[kind]) for part in parts] if few else None
        return Values(kind, values.null_count > 0, found, lists)


def _long(part: list[int], most: int) -> list[int]:
    """The values, and others next to them if the list would be short."""
    lacking = range(1, 2 + _SHORT_LIST - len(part))
    step = 1 if part[-1] + len(lacking) <= most else -1
    return sorted({*part, *((part[-1] if step > 0 else part[0]) + step * one for one in lacking)})


def _range(files: pa.Table, column: str, kind: str) -> tuple[int, int] | None:
    """The smallest and the largest value of a column; None if a file's statistics lack it."""
    low, high = (_bound(files, bound, column, kind) for bound in ("min", "max"))
    if low is None or high is None or low.null_count or high.null_count or not files.num_rows:
        return None
    return int(pc.min(low).as_py()), int(pc.max(high).as_py())


def _all(files: pa.Table, *, holds: bool) -> pa.ChunkedArray:
    return pa.chunked_array([[holds] * files.num_rows], pa.bool_())


def _may_have(files: pa.Table, column: str, values: Values) -> pa.ChunkedArray:
    """For each file, whether a row may have one of the values."""
    low, high = (_bound(files, bound, column, values.kind) for bound in ("min", "max"))
    if low is None or high is None:
        return _all(files, holds=True)
    return may_have(low, high, values.intervals)


def _bound(files: pa.Table, bound: str, column: str, kind: str) -> pa.ChunkedArray | None:
    """Bounds of a column in each file as numbers; None without statistics of this type."""
    names = {name.lower(): name for name in files.column_names}
    name = names.get(f"{bound}.{column}")
    if name is None or not _IS[kind](files.column(name).type):
        return None
    found = as_numbers(files.column(name))
    # Delta truncates statistics to milliseconds.
    return pc.add(found, _MILLISECOND - 1) if bound == "max" and kind in _TIMES else found
