"""What earlier refreshes of a view took, and what that says about the next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

# Refreshes of one kind that are looked at: fewer would let one busy minute decide.
_LATEST = 3
# What is likely to take a little longer is not worth a change of mind: measurements scatter.
_CLEARLY = 0.85
# Following a change says little about a change of so many times fewer rows.
_ALIKE = 3
# After so many full refreshes in a row changes are followed once, to learn what that takes now.
_FULL_IN_A_ROW = 20
# What a full refresh in this process takes at the least, and for each row of the inputs. Hopeful on
# purpose: it only decides whether one is tried.
_HOPED_SECONDS, _HOPED_SECONDS_A_ROW = 0.15, 1e-8


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
    """

    incremental: bool
    seconds: float
    changed: int | None
    total: int | None
    counted: bool = False
    in_process: bool = False


@dataclass(frozen=True)
class Forecast:
    """What a refresh is likely to take, in seconds; None without experience.

    Attributes:
        overdue: changes were not followed for so long that it is to be tried again.
        hoped: what a full refresh may take that was never tried; None where one was, or where
            nothing is to be hoped for.
    """

    full: float | None = None
    incremental: float | None = None
    overdue: bool = False
    hoped: float | None = None

    @property
    def invites_full(self) -> bool:
        """Whether computing everything is to be tried, because it may well be faster."""
        if self.hoped is None or self.incremental is None:
            return False
        return self.hoped < _CLEARLY * self.incremental

    @property
    def favours_full(self) -> bool:
        """Whether computing everything is clearly the faster way."""
        if self.full is None or self.incremental is None or self.overdue:
            return False
        return self.full < _CLEARLY * self.incremental

    def as_dict(self) -> dict[str, float | None]:
        """The form for programs, in seconds."""
        return {"full": _rounded(self.full), "incremental": _rounded(self.incremental)}


NO_EXPERIENCE = Forecast()


def forecast(past: Sequence[PastRefresh], *, changed: int | None, total: int | None) -> Forecast:
    """Forecast from earlier refreshes, the newest first.

    A refresh of more rows takes longer in proportion. One of fewer rows is taken to last as long,
    because what does not depend on rows is most of it where rows are few; of a change that is
    smaller by far than all before, nothing is known.

    After a full refresh kept groups are to be counted again, which takes longer than the refresh
    that it saves. That is spread over as many refreshes as used them before: where large changes
    and small ones take turns, nobody did.

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
    alike = [one for one in followed if _alike(one.changed, changed)]
    incremental = _typical(_scaled(one.seconds, one.changed, changed) for one in alike[:_LATEST])
    counted = [one for one in past if one.counted]
    if counted and not past[0].incremental:
        counting = median(_scaled(one.seconds, one.total, total) for one in counted[:_LATEST])
        uses = len(followed) / len(counted)
        incremental = (counting + uses * (incremental or 0.0)) / (1 + uses)
    last = next((at for at, one in enumerate(past) if one.incremental), None)
    return Forecast(
        full=_typical(_scaled(one.seconds, one.total, total) for one in full),
        incremental=incremental,
        overdue=last is not None and last >= _FULL_IN_A_ROW,
        hoped=_HOPED_SECONDS + _HOPED_SECONDS_A_ROW * (total or 0) if untried else None,
    )


def _alike(then: int | None, now: int | None) -> bool:
    return then is None or now is None or then <= _ALIKE * max(now, 1)


def _scaled(seconds: float, then: int | None, now: int | None) -> float:
    return seconds * max(1.0, now / then) if then and now else seconds


def _typical(seconds: Iterable[float]) -> float | None:
    known = list(seconds)
    return median(known) if known else None


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
