"""What earlier refreshes of a view took, and what that says about the next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

# Refreshes of one kind that are looked at: fewer would let one busy minute decide.
_LATEST = 3
# What is likely to take a little longer is not worth a change of mind: measurements scatter.
_CLEARLY = 0.9
# The way that was gone less often takes less once its caches are warm.
_WARM = 0.85
# Following a change is tried where it may take so many times what a full refresh takes.
_DARED = 10
# Following a change says little about a change of so many times fewer or more rows.
_ALIKE = 3
# After so many full refreshes in a row changes are followed once, to learn what that takes now.
_FULL_IN_A_ROW = 20
# Changes are followed so often before a full refresh is tried, which drops what they kept: what the
# first one took says little.
_BEFORE_A_TRY = 2
# What a full refresh in this process takes at the least, and for each row of the inputs. Hopeful on
# purpose: it only decides whether one is tried.
_HOPED_SECONDS, _HOPED_SECONDS_A_ROW = 0.1, 5e-9


@dataclass(frozen=True)
class PastRefresh:
    """A refresh of the same definition that published.

    Attributes:
        incremental: whether it followed changes; otherwise it computed everything.
        seconds: that staging and publishing took.
        changed: rows of the inputs that had changed; None where logs did not say.
        total: rows of the inputs; None where logs did not say.
        counted: whether it followed changes and had to count kept groups from all rows first.
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
        hoped: what a full refresh may take that was never tried; None where one was, or where
            nothing is to be hoped for.
        at_least: what following takes at the least, where only far smaller changes were followed.
        computed: how many full refreshes the forecast is from.
        followed: and how many that followed changes.
    """

    full: float | None = None
    incremental: float | None = None
    overdue: bool = False
    hoped: float | None = None
    at_least: float | None = None
    computed: int = 0
    followed: int = 0

    @property
    def invites_full(self) -> bool:
        """Whether computing everything is to be tried, because it may well be faster."""
        if self.hoped is None or self._following is None or self.followed < _BEFORE_A_TRY:
            return False
        return self.hoped < _CLEARLY * self._following

    @property
    def favours_full(self) -> bool:
        """Whether computing everything is clearly the faster way."""
        if self.full is None or self._following is None or self.overdue:
            return False
        full = _warm(self.full, self.computed, self.followed)
        return full < _CLEARLY * _warm(self._following, self.followed, self.computed)

    @property
    def is_dared(self) -> bool:
        """Whether so large a change is followed to learn what that takes."""
        full = self.hoped if self.full is None else self.full
        if full is None or self.incremental is None or self.at_least is None:
            return False
        return full < _CLEARLY * self.incremental <= _CLEARLY * _DARED * full

    def as_dict(self) -> dict[str, float | None]:
        """The form for programs, in seconds."""
        return {"full": _rounded(self.full), "incremental": _rounded(self.incremental)}

    @property
    def _following(self) -> float | None:
        return self.at_least if self.is_dared else self.incremental


NO_EXPERIENCE = Forecast()


def forecast(past: Sequence[PastRefresh], *, changed: int | None, total: int | None) -> Forecast:
    """Forecast from earlier refreshes, the newest first.

    A refresh of more rows takes longer in proportion. One of fewer rows is taken to last as long,
    because what does not depend on rows is most of it where rows are few. For the same reason a
    change that is larger by far than all before takes something between what those took and its
    share of it; one that is smaller by far than all before says nothing.

    After a full refresh kept groups are to be counted again, which takes longer than the refresh
    that it saves. That is spread over as many refreshes as used them before: where large changes
    and small ones take turns, nobody did. A full refresh that was only a try is no such turn.

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
    at_least = None if near else _typical(one.seconds for one in less[:_LATEST])
    counted = [one for one in past if one.counted]
    if counted and not past[0].incremental and not past[0].tried:
        counting = median(_scaled(one.seconds, one.total, total) for one in counted[:_LATEST])
        uses = len(followed) / len(counted)
        incremental = (counting + uses * (incremental or 0.0)) / (1 + uses)
        at_least = None if at_least is None else (counting + uses * at_least) / (1 + uses)
    last = next((at for at, one in enumerate(past) if one.incremental), None)
    return Forecast(
        full=_typical(_scaled(one.seconds, one.total, total) for one in full),
        incremental=incremental,
        overdue=last is not None and last >= _FULL_IN_A_ROW,
        hoped=_HOPED_SECONDS + _HOPED_SECONDS_A_ROW * (total or 0) if untried else None,
        at_least=at_least,
        computed=len(full),
        followed=len(near or less),
    )


def _warm(seconds: float, seen: int, other: int) -> float:
    """What a way may take that was gone so often, and the other way so often.

    Were both forgiven what they took at first, the one that is gone anyway would be kept to; were
    neither, the other would be judged by one cold measurement, and never be measured again.
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
