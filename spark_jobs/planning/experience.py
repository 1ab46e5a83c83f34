"""What earlier refreshes of a view took, and what that says about the next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

# Refreshes of one kind that are looked at: fewer would let one busy minute decide.
_LATEST = 3
# What is likely to take a little longer is not worth a change of mind: measurements scatter.
_CLEARLY = 0.9
# The kind of refresh with fewer samples gets faster once its caches are warm.
_WARM = 0.85
# An incremental refresh without a near sample is explored where its estimate is up to so many times
# that of a full refresh.
_EXPLORED_SLOWDOWN = 10
# A sample says little about a change of so many times fewer or more rows.
_ALIKE = 3
# After so many full refreshes in a row one is incremental, to measure what that takes now.
_FULL_IN_A_ROW = 20
# So many incremental refreshes come before a full one is explored, which drops the aggregate state:
# the first sample says little.
_BEFORE_EXPLORING_FULL = 2
# An optimistic estimate of a full refresh in this process: fixed, and for each input row. It only
# decides whether one is explored.
_OPTIMISTIC_SECONDS, _OPTIMISTIC_SECONDS_A_ROW = 0.1, 5e-9


@dataclass(frozen=True)
class PastRefresh:
    """A refresh of the same definition that published.

    Attributes:
        incremental: whether it followed changes; otherwise it computed everything.
        seconds: that staging and publishing took.
        changed: rows of the inputs that had changed; None where logs did not say.
        total: rows of the inputs; None where logs did not say.
        counted: whether it followed changes and had to count aggregate state from all rows first.
        in_process: whether it was computed without Spark.
        tried: whether it computed everything to learn what that takes.
    """

    incremental: bool
    seconds: float
    changed: int | None
    total: int | None
    counted: bool = False
    in_process: bool = False
    tried: bool = False


@dataclass(frozen=True)
class Forecast:
    """What a refresh is likely to take, in seconds; None without experience.

    Attributes:
        overdue: changes were not followed for so long that it is to be tried again.
        optimistic_full: an optimistic estimate of a full refresh that was never measured; None
            where one was, or where none can be made.
        incremental_at_least: a lower bound of an incremental refresh, where all samples are of far
            smaller changes.
        computed: how many full refreshes the forecast is from.
        followed: and how many that followed changes.
    """

    full: float | None = None
    incremental: float | None = None
    overdue: bool = False
    optimistic_full: float | None = None
    incremental_at_least: float | None = None
    computed: int = 0
    followed: int = 0

    @property
    def explores_full(self) -> bool:
        """Whether to explore a full refresh, because it may well be faster."""
        if (
            self.optimistic_full is None
            or self._following is None
            or self.followed < _BEFORE_EXPLORING_FULL
        ):
            return False
        return self.optimistic_full < _CLEARLY * self._following

    @property
    def favours_full(self) -> bool:
        """Whether a full refresh is clearly the faster one."""
        if self.full is None or self._following is None or self.overdue:
            return False
        full = _warm(self.full, self.computed, self.followed)
        return full < _CLEARLY * _warm(self._following, self.followed, self.computed)

    @property
    def explores_incremental(self) -> bool:
        """Whether to explore an incremental refresh of so large a change, to measure it."""
        full = self.optimistic_full if self.full is None else self.full
        if full is None or self.incremental is None or self.incremental_at_least is None:
            return False
        return full < _CLEARLY * self.incremental <= _CLEARLY * _EXPLORED_SLOWDOWN * full

    def as_dict(self) -> dict[str, float | None]:
        """The form for programs, in seconds."""
        return {"full": _rounded(self.full), "incremental": _rounded(self.incremental)}

    @property
    def _following(self) -> float | None:
        return self.incremental_at_least if self.explores_incremental else self.incremental


NO_EXPERIENCE = Forecast()


def forecast(past: Sequence[PastRefresh], *, changed: int | None, total: int | None) -> Forecast:
    """Forecast from earlier refreshes, the newest first.

    A refresh of more rows takes longer in proportion. One of fewer rows is taken to last as long,
    because what does not depend on rows is most of it where rows are few. For the same reason a
    change that is larger by far than all before takes something between what those took and its
    share of it; one that is smaller by far than all before says nothing.

    After a full refresh the aggregate state must be counted again, which takes longer than the
    refresh that it saves. That is spread over as many refreshes as used them before: where large
    changes and small ones alternate, no refresh did. A full refresh that only explored is no such
    alternation.

    Only refreshes by the engine of the newest count: what Spark takes says nothing about DuckDB. A
    first build is always Spark's, so a full refresh in this process may never have been seen.

    Args:
        past: of the same definition.
        changed: rows of the inputs that changed.
        total: rows of the inputs.
    """
    here = bool(past) and past[0].in_process
    past = [one for one in past if one.in_process == here]
    full = [one for one in past if not one.incremental][:_LATEST]
    untried = here and not full and total is not None
    followed = [one for one in past if one.incremental and not one.counted]
    near = [one for one in followed if not _less(one.changed, changed)]
    near = [one for one in near if not _less(changed, one.changed)]
    less = [one for one in followed if _less(one.changed, changed)]
    incremental = _typical(
        _scaled(one.seconds, one.changed, changed) for one in (near or less)[:_LATEST]
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
    last = next((at for at, one in enumerate(past) if one.incremental), None)
    return Forecast(
        full=_typical(_scaled(one.seconds, one.total, total) for one in full),
        incremental=incremental,
        overdue=last is not None and last >= _FULL_IN_A_ROW,
        optimistic_full=_OPTIMISTIC_SECONDS + _OPTIMISTIC_SECONDS_A_ROW * (total or 0)
        if untried
        else None,
        incremental_at_least=incremental_at_least,
        computed=len(full),
        followed=len(near or less),
    )


def _warm(seconds: float, seen: int, other: int) -> float:
    """An estimate from ``seen`` samples, where the other kind of refresh has ``other``.

    The kind with few samples is discounted, as its first ones ran with cold caches. With a discount
    for both, the kind in use would always win; with none, the other would be rejected after one
    cold sample and never be measured again.
    """
    return _WARM * seconds if seen < min(other, _LATEST) else seconds


def _less(one: int | None, other: int | None) -> bool:
    """Whether a change is far smaller than another."""
    return one is not None and other is not None and other > _ALIKE * max(one, 1)


def _scaled(seconds: float, then: int | None, now: int | None) -> float:
    return seconds * max(1.0, now / then) if then and now else seconds


def _typical(seconds: Iterable[float]) -> float | None:
    known = list(seconds)
    return median(known) if known else None


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
