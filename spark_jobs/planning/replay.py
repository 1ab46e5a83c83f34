"""The plan of a replay for people and programs: views, rows, cost.

Plain values, filled by ``gold.recover.replay``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spark_jobs.planning.decision import Range
from spark_jobs.planning.markdown import as_markdown
from spark_jobs.planning.plan import RefreshPlan
from spark_jobs.planning.request import ReplayRequest


@dataclass(frozen=True, kw_only=True)
class ViewPlan:
    """The plan for one view.

    Attributes:
        rows: rows of the published table; None if unpublished or not counted.
        pieces: in how many the rows are computed.
        in_the_way: what writes or pins the view now.
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
        """Upper limit of the input rows that are read; None if unknown."""
        return None if self.refresh.estimate is None else self.refresh.estimate.rows

    @property
    def bytes(self) -> int:
        return 0 if self.refresh.estimate is None else self.refresh.estimate.bytes

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object.

        Returns:
            the keys of ``RefreshPlan.as_dict``; and ``rows``, ``reads`` (rows), ``bytes`` (to
                read), ``pieces`` and ``in_the_way``.
        """
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
    """The plan of a replay.

    Attributes:
        views: in the order of processing.
        left_out: views that are not stale, if only stale views were requested.
        followers: downstream views that are refreshed afterwards.
    """

    request: ReplayRequest
    views: tuple[ViewPlan, ...]
    left_out: tuple[str, ...] = ()
    followers: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The views that are recomputed."""
        return tuple(one.view for one in self.views if not one.refresh.skips)

    @property
    def reads(self) -> int | None:
        """Input rows of all views; None if unknown."""
        counts = [one.reads for one in self.views if not one.refresh.skips]
        known = [one for one in counts if one is not None]
        return sum(known) if len(known) == len(counts) else None

    def needs_approval(self, *, above_rows: int) -> bool:
        """Whether a person must approve it; yes if the number of rows is unknown."""
        return bool(self.names) and (self.reads is None or self.reads > above_rows)

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object: the attributes, and ``reads``, the input rows of all views."""
        return {
            "request": self.request.as_dict(),
            "views": [one.as_dict() for one in self.views],
            "left_out": list(self.left_out),
            "followers": list(self.followers),
            "reads": self.reads,
        }

    def markdown(self) -> str:
        """The plan as a Markdown table, for logs and approvers."""
        lines = [
            "| view | decision | versions | rows | reads | pieces | conflicts |",
            "|---|---|---|---|---|---|---|",
        ]
        lines += [
            f"| {one.view} | {one.refresh.line} | {one.refresh.vector} | {_count(one.rows)} "
            f"| {_count(one.reads)} rows, {one.bytes:,} bytes | {one.pieces} "
            f"| {'; '.join(map(as_markdown, one.in_the_way)) or 'nothing'} |"
            for one in self.views
        ]
        if self.left_out:
            lines += ["", f"Not stale, left out: {', '.join(self.left_out)}."]
        if self.followers:
            lines += ["", f"Refreshed afterwards: {', '.join(self.followers)}."]
        return "\n".join(lines)


def _count(number: int | None) -> str:
    return "unknown" if number is None else f"{number:,}"
