"""The cost model: forecasts the next refresh of a view from its earlier ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

# Samples of each kind; with fewer, one busy minute could decide.
_LATEST = 3
# Change the kind of refresh only for a clear gain: measurements scatter.
_CLEARLY = 0.9
# Discount for the kind with fewer samples, which gets faster when its caches are warm.
_WARM = 0.85
# Explore an incremental refresh without a similar sample if its estimate is at most this many times
# that of a full refresh.
_EXPLORED_SLOWDOWN = 10
# Changes are similar if their rows differ by less than this factor.
_SIMILAR_FACTOR = 3
# A changed row takes at most about this many times what a row takes a full refresh. Measured with
# TPC-H at scale 1, from few rows to many: 4 to 44 times in Spark, 1 to 12 in DuckDB.
_CHANGED_ROW = 40
# After this many full refreshes in a row, explore an incremental one.
_FULL_IN_A_ROW = 20
# Incremental refreshes before a full one is explored. A full refresh drops the aggregate state, and
# the first sample says little.
_BEFORE_EXPLORING_FULL = 2
# The least that an incremental refresh in Spark takes for each table that its program reads, on two
# cores: planning and starting the tasks. Measured with TPC-DS over tiny tables: 0.017 to 0.037
# seconds if the session is warm, and two to four times as much the first time.
_SECONDS_A_TABLE = 0.02
# With fewer tables, a wrong choice costs little.
_MANY_TABLES = 80
# A full refresh that was measured only in the first build, with cold caches, is tried once more if
# that build took at most this many times what following the changes takes. Measured with TPC-H at
# scale 1 on Spark: a first build takes 2.1 to 3.9 times the CPU of a later full refresh.
_COLD = 3
# Only for refreshes that take at least so many seconds: less is mostly fixed, and little to gain.
_WORTH_A_TRY = 2.0
# With fewer input rows, a slow refresh says something about the machine and nothing about the data.
_ROWS_WORTH_A_TRY = 100_000
# Optimistic estimate of a full refresh in DuckDB: fixed seconds, and seconds per input row. It
# decides only whether to explore one.
_OPTIMISTIC_SECONDS, _OPTIMISTIC_SECONDS_A_ROW = 0.1, 5e-9


@dataclass(frozen=True)
class PastRefresh:
    """A published refresh of the same definition.

    Attributes:
        incremental: whether it was incremental, otherwise full.
        seconds: time for staging and publishing.
        changed: changed input rows; None if the logs had no counts.
        total: input rows; None if the logs had no counts.
        counted: whether it was incremental and had to compute aggregate state from all rows.
        in_process: whether DuckDB computed it.
        tried: whether it was a full refresh to measure its cost.
        cold: whether it was the first of its definition, which Spark had not compiled before.
    """

    incremental: bool
    seconds: float
    changed: int | None
    total: int | None
    counted: bool = False
    in_process: bool = False
    tried: bool = False
    cold: bool = False


@dataclass(frozen=True)
class Forecast:
    """The expected seconds of a refresh; None if unknown.

    Attributes:
        overdue: whether an incremental refresh should be explored, because the last one is long
            ago.
        optimistic_full: optimistic estimate of a full refresh that was never measured; None if one
            was, or if there is no estimate.
        incremental_at_least: lower bound of an incremental refresh, if all samples are of far
            smaller changes.
        computed: number of full refreshes in the forecast.
        followed: number of incremental refreshes in the forecast.
        by_size: lower bound of an incremental refresh without a sample, from the size of its
            program; None if there is a sample, or if the program is unknown or small.
        may_be_less: whether ``full`` is that of the first build alone, so that a full refresh may
            take far less now, and the inputs are large enough to find out.
    """

    full: float | None = None
    incremental: float | None = None
    overdue: bool = False
    optimistic_full: float | None = None
    incremental_at_least: float | None = None
    computed: int = 0
    followed: int = 0
    by_size: float | None = None
    may_be_less: bool = False

    @property
    def explores_full(self) -> bool:
        """Whether to explore a full refresh, because it may be faster."""
        if self.following is None:
            return False
        if self.optimistic_full is not None:
            clearly = self.optimistic_full < _CLEARLY * self.following
            return clearly and self.followed >= _BEFORE_EXPLORING_FULL
        return (
            self.may_be_less
            and self.full is not None
            and self.incremental_at_least is None
            and self.followed >= _LATEST
            and self.following >= _WORTH_A_TRY
            and self.full <= _COLD * self.following
        )

    @property
    def favours_full(self) -> bool:
        """Whether a full refresh is clearly faster."""
        if self.full is None or self.following is None or self.overdue:
            return False
        full = _warm(self.full, self.computed, self.followed)
        return full < _CLEARLY * _warm(self.following, self.followed, self.computed)

    @property
    def explores_incremental(self) -> bool:
        """Whether to explore an incremental refresh of a change this large."""
        full = self.optimistic_full if self.full is None else self.full
        if full is None or self.incremental is None or self.incremental_at_least is None:
            return False
        return full < _CLEARLY * self.incremental <= _CLEARLY * _EXPLORED_SLOWDOWN * full

    def as_dict(self) -> dict[str, float | None]:
        """As a JSON object: the expected seconds ``full`` and ``incremental``; None if unknown."""
        return {"full": _rounded(self.full), "incremental": _rounded(self.incremental)}

    @property
    def following(self) -> float | None:
        """The seconds of an incremental refresh that decide."""
        if self.incremental is None:
            return self.by_size
        return self.incremental_at_least if self.explores_incremental else self.incremental


NO_EXPERIENCE = Forecast()


def forecast(
    past: Sequence[PastRefresh],
    *,
    changed: int | None,
    total: int | None,
    tables: int | None = None,
    tried_in_vain: bool = False,
) -> Forecast:
    """Forecast from earlier refreshes, newest first.

    The time of more rows is scaled up in proportion. The time of fewer rows is not scaled down,
    because with few rows most of it is fixed. So a change that is far larger than all samples takes
    between their time and its proportional share; a far smaller sample gives no upper bound. If a
    full refresh is known, its time for a row bounds what each changed row adds.

    After a full refresh the aggregate state must be computed again, which costs more than the
    refresh saves. That cost is spread over as many refreshes as used the state before; none did if
    large and small changes alternate. A full refresh that only explored does not count as an
    alternation.

    Only samples of the newest sample's engine count: Spark's times say nothing about DuckDB's. A
    first build always runs in Spark, so a full refresh in DuckDB may never have been measured. The
    first build of a definition counts only until another full refresh was measured.

    Args:
        past: samples of the same definition.
        changed: changed input rows.
        total: input rows.
        tables: tables that an incremental refresh in Spark would read, each as often as its program
            names it; None if unknown.
        tried_in_vain: whether a full refresh was tried, and did not come to its end.
    """
    here = bool(past) and past[0].in_process
    past = [one for one in past if one.in_process == here]
    full = [one for one in past if not one.incremental]
    full = ([one for one in full if not one.cold] or full)[:_LATEST]
    untried = here and not full and total is not None and not tried_in_vain
    followed = [one for one in past if one.incremental and not one.counted]
    near = [one for one in followed if not _less(one.changed, changed)]
    near = [one for one in near if not _less(changed, one.changed)]
    less = [one for one in followed if _less(one.changed, changed)]
    row = _typical(one.seconds / one.total for one in full if one.total)
    incremental = _typical(
        min(_scaled(one.seconds, one.changed, changed), _added(one, changed, row))
        for one in (near or less)[:_LATEST]
    )
    incremental_at_least = None if near else _typical(one.seconds for one in less[:_LATEST])
    counted = [one for one in past if one.counted]
    if counted and not past[0].incremental and not past[0].tried:
        counting = median(_scaled(one.seconds, one.total, total) for one in counted[:_LATEST])
        uses = len(followed) / len(counted)
        incremental = (counting + uses * (incremental or 0.0)) / (1 + uses)
        incremental_at_least = (
            None
            if incremental_at_least is None
            else (counting + uses * incremental_at_least) / (1 + uses)
        )
    by_size = None
    if incremental is None and tables is not None and tables >= _MANY_TABLES:
        by_size = _SECONDS_A_TABLE * tables
    full_in_a_row = next((at for at, one in enumerate(past) if one.incremental), len(past))
    return Forecast(
        full=_typical(_scaled(one.seconds, one.total, total) for one in full),
        incremental=incremental,
        overdue=full_in_a_row >= _FULL_IN_A_ROW,
        optimistic_full=_OPTIMISTIC_SECONDS + _OPTIMISTIC_SECONDS_A_ROW * (total or 0)
        if untried
        else None,
        incremental_at_least=incremental_at_least,
        computed=len(full),
        followed=len(near or less),
        by_size=by_size,
        may_be_less=bool(full)
        and all(one.cold and one.total for one in full)
        and (total or 0) >= _ROWS_WORTH_A_TRY
        and not tried_in_vain,
    )


def _warm(seconds: float, seen: int, other: int) -> float:
    """Discount an estimate from ``seen`` samples if the other kind has more (``other``).

    First samples ran with cold caches. With a discount for both kinds, the kind in use would always
    win; with none, the other kind would lose after one cold sample and never be measured again.
    """
    return _WARM * seconds if seen < min(other, _LATEST) else seconds


def _less(one: int | None, other: int | None) -> bool:
    """Whether a change is far smaller than another."""
    return one is not None and other is not None and other > _SIMILAR_FACTOR * max(one, 1)


def _scaled(seconds: float, then: int | None, now: int | None) -> float:
    return seconds * max(1.0, now / then) if then and now else seconds


def _added(sample: PastRefresh, changed: int | None, row: float | None) -> float:
    """A sample's seconds, and those of the rows that it did not have; infinite if unknown."""
    if row is None or changed is None or sample.changed is None:
        return math.inf
    return sample.seconds + _CHANGED_ROW * row * max(0, changed - sample.changed)


def _typical(seconds: Iterable[float]) -> float | None:
    known = list(seconds)
    return median(known) if known else None


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
