"""Validates requests for replays and rollbacks, field by field.

Fields come from a form, the REST API or the command line. Only listed values are accepted, so that
no raw text reaches a query, a path or a shell.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from spark_jobs.definitions.durations import duration_text, parse_duration
from spark_jobs.graph.manifest import Manifest
from spark_jobs.planning.errors import (
    NothingSelectedError,
    ReplayRequestError,
    SelectionSyntaxError,
)
from spark_jobs.planning.ranges import MOST_PIECES, TimeRange
from spark_jobs.planning.selection import names_one_view, selected_views

# Limits of the reason's length, in characters.
_LONGEST = 300
_SHORTEST = 10
# Categories of invisible characters, and of those that affect their neighbours' display. Some
# scripts need two of them, the joiners.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_JOINERS = "\u200c\u200d"
# The whole days of a range up to here end within the year 9999.
_LAST = datetime(9999, 12, 31, tzinfo=UTC)
# Patterns that forms check on submission.
TICKET = r"[A-Za-z0-9#][A-Za-z0-9#_./-]{0,79}"
REPLAY_ID = r"(?:replay|rollback)-[A-Za-z0-9_.~:+-]{1,200}"
ATTEMPT = r"[a-z][a-z0-9_]{0,79}-[0-9]{8}T[0-9]{6}-[0-9a-f]{8}"
INSTANT = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(?:Z|[+-][0-9]{2}:[0-9]{2})?)?"
)


@dataclass(frozen=True, kw_only=True)
class ReplayRequest:
    """A valid request for a replay.

    Attributes:
        views: gold views, upstream views first.
        time: range of each view's time column; None: whole views.
        piece: length of a piece that is computed at once; None: the whole range.
        only_stale: leave out views that have the newest versions of their inputs.
    """

    views: tuple[str, ...]
    time: TimeRange | None = None
    piece: timedelta | None = None
    only_stale: bool = False

    def as_dict(self) -> dict[str, Any]:
        """As stored in the control database.

        Returns:
            ``views``, ``from`` and ``to`` in ISO 8601 (None: whole views), ``chunk`` as a
                duration's text (None: in one piece), and ``only_stale``.
        """
        return {
            "views": list(self.views),
            "from": self.time and self.time.start.isoformat(),
            "to": self.time and self.time.end.isoformat(),
            "chunk": self.piece and duration_text(self.piece.total_seconds()),
            "only_stale": self.only_stale,
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Self:
        """Decode the result of ``as_dict``."""
        time = value["from"] and TimeRange(
            datetime.fromisoformat(value["from"]), datetime.fromisoformat(value["to"])
        )
        return cls(
            views=tuple(value["views"]),
            time=time or None,
            piece=parse_duration(value["chunk"]) if value["chunk"] else None,
            only_stale=value["only_stale"],
        )


@dataclass(frozen=True)
class Why:
    """The reason and ticket of an action."""

    reason: str
    ticket: str | None


def replay_request(
    manifest: Manifest,
    views: object,
    *,
    branch: object = False,
    start: object = None,
    end: object = None,
    chunk: object = None,
    only_stale: object = False,
    now: datetime | None = None,
    changed: Callable[[], Collection[str]] = frozenset,
) -> ReplayRequest:
    """Validate the fields of a form.

    Args:
        manifest: the project; only its views are accepted.
        views: a list of names and selections; see ``planning.selection``.
        branch: whether to include all downstream views.
        start: start of the range, inclusive; ISO 8601, UTC unless it has a zone.
        end: end of the range, exclusive; likewise.
        chunk: length of a piece, for instance ``1 day``.
        only_stale: see ``ReplayRequest``.
        now: upper limit of the start; None: the current time.
        changed: returns the views for ``state:changed``.

    Raises:
        ReplayRequestError: a field has a value that is not allowed.
    """
    names = _views(manifest, views, changed)
    if _flag("branch", branch):
        names = downstream(manifest, names)
    time = _range(start, end, now=now or datetime.now(UTC))
    return ReplayRequest(
        views=tuple(
            one.name for tier in manifest.gold_by_tier() for one in tier if one.name in names
        ),
        time=time,
        piece=_piece(chunk, time),
        only_stale=_flag("only_stale", only_stale),
    )


def why(reason: object, ticket: object = None) -> Why:
    """Validate the reason and the ticket.

    Raises:
        ReplayRequestError: the reason is missing, too short or too long, or the ticket has
            characters that are not allowed.
    """
    because = _line(reason) if isinstance(reason, str) else ""
    if not _SHORTEST <= len(because) <= _LONGEST or not any(map(str.isalnum, because)):
        raise ReplayRequestError(
            "reason",
            f"is not a reason of {_SHORTEST} to {_LONGEST} characters",
            remedy="Say why, in your own words.",
        )
    named = isinstance(ticket, str) and (ticket == "" or re.fullmatch(TICKET, ticket))
    if ticket is not None and not named:
        raise ReplayRequestError(
            "ticket",
            "is not a ticket",
            remedy="Use up to 80 letters, digits and # _ . / -, for instance OPS-123.",
        )
    return Why(because, str(ticket) if ticket else None)


def _line(text: str) -> str:
    """The text on one line, without invisible characters."""
    seen = (
        one if one in _JOINERS or unicodedata.category(one) not in _UNSEEN else " "
        for one in text[: 2 * _LONGEST]
    )
    return " ".join("".join(seen).split())


def one_view(manifest: Manifest, view: object, *, field: str = "view") -> str:
    """Validate the name of a gold view.

    Raises:
        ReplayRequestError: the project has no such view.
    """
    name = view.removeprefix("gold.") if isinstance(view, str) else ""
    if name not in manifest.gold:
        known = ", ".join(sorted(manifest.gold)) or "none"
        raise ReplayRequestError(
            field, "names no gold view of the project", remedy=f"Choose among: {known}."
        )
    return name


def version_number(version: object) -> int | None:
    """Validate a table version; None stays None.

    Raises:
        ReplayRequestError: it is not a version.
    """
    if version is None:
        return None
    if isinstance(version, bool) or not isinstance(version, int) or version < 0:
        raise ReplayRequestError(
            "version", "is not a table version", remedy="Use an integer from 0, or leave it empty."
        )
    return version


def replay_name(replay: object) -> str | None:
    """Validate the id of a replay or rollback; None stays None.

    Raises:
        ReplayRequestError: it is not such an id.
    """
    if replay is None or replay == "":
        return None
    if not isinstance(replay, str) or not re.fullmatch(REPLAY_ID, replay):
        raise ReplayRequestError(
            "replay", "is not the id of a replay", remedy="`tidemark replay status` lists them."
        )
    return replay


def attempt_name(attempt: object) -> str | None:
    """Validate the id of an attempt; None stays None.

    Raises:
        ReplayRequestError: it is not such an id.
    """
    if attempt is None or attempt == "":
        return None
    if not isinstance(attempt, str) or not re.fullmatch(ATTEMPT, attempt):
        raise ReplayRequestError(
            "attempt", "is not the id of an attempt", remedy="`tidemark status VIEW` lists them."
        )
    return attempt


def downstream(manifest: Manifest, views: set[str]) -> set[str]:
    """The views and all views that read them, directly or through others."""
    found, waiting = set(views), list(views)
    while waiting:
        for reader in manifest.gold[waiting.pop()].downstream:
            if reader not in found:
                found.add(reader)
                waiting.append(reader)
    return found


def _views(manifest: Manifest, views: object, changed: Callable[[], Collection[str]]) -> set[str]:
    if not isinstance(views, list | tuple) or not views:
        raise ReplayRequestError(
            "views", "is not a list of views", remedy="Choose one gold view or more."
        )
    return set().union(*(_selected(manifest, one, changed) for one in views))


def _selected(
    manifest: Manifest, text: object, changed: Callable[[], Collection[str]]
) -> frozenset[str]:
    """The views that one entry selects; errors never repeat the raw text."""
    if not isinstance(text, str) or names_one_view(text):
        return frozenset({one_view(manifest, text, field="views")})
    try:
        return frozenset(selected_views(manifest, [text], changed=changed))
    except (SelectionSyntaxError, NothingSelectedError) as error:
        raise ReplayRequestError(
            "views",
            "selects no gold view",
            remedy="Name a view, tag:NAME, owner:NAME, path:FOLDER or state:changed; + before it "
            "adds its inputs, + after it its downstream views.",
        ) from error


def _flag(field: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ReplayRequestError(field, "is neither true nor false", remedy="Use true or false.")
    return value


def _range(start: object, end: object, *, now: datetime) -> TimeRange | None:
    first, last = _instant("from", start), _instant("to", end)
    if first is None and last is None:
        return None
    if first is None or last is None:
        field = "from" if first is None else "to"
        raise ReplayRequestError(
            field, "is missing", remedy="Give both ends of the range, or none for the whole view."
        )
    if first >= now:
        raise ReplayRequestError(
            "from", "is in the future", remedy="Give a range that has begun; instants are UTC."
        )
    if not first < last:
        raise ReplayRequestError(
            "to", "is not after 'from'", remedy="The range ends before the instant 'to'."
        )
    if last > _LAST:
        raise ReplayRequestError(
            "to",
            "is too late",
            remedy=f"The latest is {_LAST:%Y-%m-%d}; give no range for all rows.",
        )
    return TimeRange(first, last)


def _instant(field: str, value: object) -> datetime | None:
    if value is None or value == "":
        return None
    remedy = "Write a date or an instant in ISO 8601, for instance 2026-01-31 (UTC)."
    if not isinstance(value, str) or not re.fullmatch(INSTANT, value):
        raise ReplayRequestError(field, "is not a date", remedy=remedy)
    try:
        found = datetime.fromisoformat(value)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ReplayRequestError(field, "is not a date", remedy=remedy) from None


def _piece(chunk: object, time: TimeRange | None) -> timedelta | None:
    if chunk is None or chunk == "":
        return None
    remedy = "Write a length of time, for instance 1 day or 6 hours."
    short = isinstance(chunk, str) and len(chunk) <= _LONGEST
    found = parse_duration(str(chunk)) if short else None
    if found is None:
        raise ReplayRequestError("chunk", "is not a duration", remedy=remedy)
    if time is None:
        raise ReplayRequestError(
            "chunk", "needs a range", remedy="Give 'from' and 'to' as well, or no chunk."
        )
    if (time.end - time.start) / found > MOST_PIECES:
        raise ReplayRequestError(
            "chunk", f"cuts the range into more than {MOST_PIECES} pieces", remedy=remedy
        )
    return found
