"""The plan of a replay as people and programs read it: which views, how much of each, its cost.

Values only; ``gold.replay`` fills them from what it observes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spark_jobs.planning.decision import Range
from spark_jobs.planning.plan import RefreshPlan
from spark_jobs.planning.request import ReplayRequest


@dataclass(frozen=True, kw_only=True)
class ViewPlan:
    """What is to be done about one view.

    Attributes:
        rows: of the published table; None where nothing is published or its log has no count.
        pieces: in how many the rows are computed.
        in_the_way: who writes or holds the view now.
    """

    refresh: RefreshPlan
    rows: int | None
    in_the_way: tuple[str, ...] = ()

    @property
    def view(self) -> str:
        return self.refresh.view

    @property
    def pieces(self) -> int:
        decision = self.refresh.decision
        return len(decision.rows.pieces()) if isinstance(decision, Range) else 1

    @property
    def reads(self) -> int | None:
        """Rows of the inputs, at most so many are read; None where a log does not count them."""
        return None if self.refresh.estimate is None else self.refresh.estimate.rows

    @property
    def bytes(self) -> int:
        return 0 if self.refresh.estimate is None else self.refresh.estimate.bytes

    def as_dict(self) -> dict[str, Any]:
        """The form for programs."""
        return {
            **self.refresh.as_dict(),
            "rows": self.rows,
            "reads": self.reads,
            "bytes": self.bytes,
            "pieces": self.pieces,
            "in_the_way": list(self.in_the_way),
        }


@dataclass(frozen=True, kw_only=True)
class ReplayPlan:
    """What a replay will do.

    Attributes:
        views: in the order of the work.
        left_out: views that are not stale, where only stale ones were asked for.
        followers: views that are refreshed afterwards because they read these.
    """

    request: ReplayRequest
    views: tuple[ViewPlan, ...]
    left_out: tuple[str, ...] = ()
    followers: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The views that are computed again."""
        return tuple(one.view for one in self.views if not one.refresh.skips)

    @property
    def reads(self) -> int | None:
        """Rows of the inputs of all views; None where a log does not count them."""
        counts = [one.reads for one in self.views if not one.refresh.skips]
        known = [one for one in counts if one is not None]
        return sum(known) if len(known) == len(counts) else None

    def needs_approval(self, *, above_rows: int) -> bool:
        """Whether a person is to agree first: also where nobody knows how much is read."""
        return bool(self.names) and (self.reads is None or self.reads > above_rows)

    def as_dict(self) -> dict[str, Any]:
        """The form for programs."""
        return {
            "request": self.request.as_dict(),
            "views": [one.as_dict() for one in self.views],
            "left_out": list(self.left_out),
            "followers": list(self.followers),
            "reads": self.reads,
        }

    def markdown(self) -> str:
        """The plan as a table, for a log and for whoever approves."""
        lines = [
            "| view | what | versions | rows | reads | pieces | in the way |",
            "|---|---|---|---|---|---|---|",
        ]
        lines += [
            f"| {one.view} | {one.refresh.line} | {one.refresh.vector} | {_count(one.rows)} "
            f"| {_count(one.reads)} rows, {one.bytes:,} bytes | {one.pieces} "
            f"| {'; '.join(one.in_the_way) or 'nothing'} |"
            for one in self.views
        ]
        if self.left_out:
            lines += ["", f"Not stale, left out: {', '.join(self.left_out)}."]
        if self.followers:
            lines += ["", f"Refreshed afterwards: {', '.join(self.followers)}."]
        return "\n".join(lines)


def _count(number: int | None) -> str:
    return "unknown" if number is None else f"{number:,}"
