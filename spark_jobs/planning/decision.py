"""The decision about a view: skip, compute, or publish existing rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, assert_never

from spark_jobs.planning.ranges import RowRange


class ReasonCode(StrEnum):
    """Why a view is refreshed in this way; programs and runbooks refer to these codes."""

    NO_UPSTREAM_CHANGE = "NO_UPSTREAM_CHANGE"
    INPUT_MISSING = "INPUT_MISSING"
    INPUT_BEHIND = "INPUT_BEHIND"
    NEWER_PUBLISHED = "NEWER_PUBLISHED"
    FIRST_BUILD = "FIRST_BUILD"
    FORCED = "FORCED"
    DEFINITION_CHANGED = "DEFINITION_CHANGED"
    COLUMNS_CHANGED = "COLUMNS_CHANGED"
    INPUT_CHANGED_NO_RULE = "INPUT_CHANGED_NO_RULE"
    INPUT_CHANGED_RULE = "INPUT_CHANGED_RULE"
    CHANGE_FEED_MISSING = "CHANGE_FEED_MISSING"
    FULL_IS_FASTER = "FULL_IS_FASTER"
    FULL_IS_TRIED = "FULL_IS_TRIED"
    CHANGE_TOO_LARGE = "CHANGE_TOO_LARGE"
    INPUT_RESHAPED = "INPUT_RESHAPED"
    STRATEGY_FULL = "STRATEGY_FULL"
    INPUT_RECREATED = "INPUT_RECREATED"
    INPUT_REWOUND = "INPUT_REWOUND"
    CLOCK_MOVED = "CLOCK_MOVED"
    RESTORED = "RESTORED"
    FOREIGN_COMMIT = "FOREIGN_COMMIT"
    EPOCH_BUMPED = "EPOCH_BUMPED"
    VIEW_PINNED = "VIEW_PINNED"
    REPLAY_PUBLISHES = "REPLAY_PUBLISHES"
    WAITS_FOR_PERSON = "WAITS_FOR_PERSON"
    WAITS_FOR_TRANSACTION = "WAITS_FOR_TRANSACTION"
    REPLAYED = "REPLAYED"
    BACKFILLED = "BACKFILLED"
    ROLLED_BACK = "ROLLED_BACK"
    PROMOTED = "PROMOTED"


@dataclass(frozen=True)
class Reason:
    """A code, and one line of text without a full stop."""

    code: ReasonCode
    text: str


@dataclass(frozen=True)
class Skip:
    """Keep the published content."""

    reason: Reason


@dataclass(frozen=True)
class Full:
    """Compute the whole result.

    Attributes:
        columns: compute only these columns and keep the published values of the others; None: all.
    """

    reason: Reason
    columns: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Incremental:
    """Apply the changes of the inputs by a maintenance strategy.

    Attributes:
        rule: name of the strategy; see ``planning.rules``.
    """

    reason: Reason
    rule: str


@dataclass(frozen=True)
class Range:
    """Recompute the rows of a time range, at the published versions.

    Attributes:
        rows: which rows, and in which pieces.
    """

    reason: Reason
    rows: RowRange


@dataclass(frozen=True)
class Rollback:
    """Publish an earlier content of the table.

    Attributes:
        version: version of the published table to restore.
        clock: the value of CURRENT_TIMESTAMP in its rows; None: unknown, in an older ledger.
    """

    reason: Reason
    version: int
    clock: datetime | None = None


@dataclass(frozen=True)
class Promotion:
    """Publish the result of an environment.

    Attributes:
        environment: its name.
        version: version of the environment's table.
        clock: the value of CURRENT_TIMESTAMP in its rows; None: unknown, in an older ledger.
    """

    reason: Reason
    environment: str
    version: int
    clock: datetime | None = None


Decision = Skip | Full | Incremental | Range | Rollback | Promotion


def decision_word(decision: Decision) -> str:
    """The decision's name in the ledger and in output.

    >>> decision_word(Full(Reason(ReasonCode.FORCED, "forced")))
    'full'
    """
    match decision:
        case Skip():
            return "skip"
        case Full():
            return "full"
        case Incremental():
            return "incremental"
        case Range():
            return "range"
        case Rollback():
            return "rollback"
        case Promotion():
            return "promotion"
        case _:
            assert_never(decision)


def explain(decision: Decision) -> str:
    """The decision and its reason in one line.

    >>> explain(Skip(Reason(ReasonCode.NO_UPSTREAM_CHANGE, "no upstream change")))
    'skip: no upstream change'
    """
    return f"{decision_word(decision)}: {decision.reason.text}"


def scope_of(decision: Decision) -> dict[str, Any] | None:
    """The part of the view that a decision covers, as stored in the ledger; None: all of it.

    Returns:
        for a range, the keys of ``RowRange.as_dict``; for a rollback, ``version``; for a promotion,
            ``environment`` and ``version``; for both ``clock`` in ISO 8601, unless it is None; for
            a recompute of some columns, ``columns``.
    """
    match decision:
        case Range():
            return decision.rows.as_dict()
        case Rollback():
            return {"version": decision.version, **_clock_in_scope(decision.clock)}
        case Promotion():
            clock = _clock_in_scope(decision.clock)
            return {"environment": decision.environment, "version": decision.version, **clock}
        case Full(columns=columns) if columns is not None:
            return {"columns": list(columns)}
        case Skip() | Full() | Incremental():
            return None
        case _:
            assert_never(decision)


def rule_of(decision: Decision) -> str | None:
    """The maintenance strategy of a decision; None if it has none."""
    return decision.rule if isinstance(decision, Incremental) else None


def decision_of(
    word: str, *, reason: Reason, rule: str | None, scope: Mapping[str, Any] | None
) -> Decision:
    """Decode a decision from the ledger.

    Args:
        word: from ``decision_word``.
        reason: the reason of the decision.
        rule: from ``rule_of``.
        scope: from ``scope_of``.

    Raises:
        ValueError: the word is unknown, or the scope does not fit it.
    """
    match word, scope or {}:
        case "skip", {}:
            return Skip(reason)
        case "full", {"columns": columns}:
            return Full(reason, tuple(columns))
        case "full", {}:
            return Full(reason)
        case "incremental", {}:
            # Older releases did not store the strategy.
            return Incremental(reason, rule or word)
        case "range", {"column": _} as rows:
            return Range(reason, RowRange.from_dict(rows))
        case "rollback", {"version": version} as rows:
            return Rollback(reason, int(version), _clock_of_scope(rows))
        case "promotion", {"environment": environment, "version": version} as rows:
            return Promotion(reason, str(environment), int(version), _clock_of_scope(rows))
        case _:
            raise ValueError(f"{word!r} with scope {scope!r} is not a decision")


def _clock_in_scope(clock: datetime | None) -> dict[str, str]:
    return {} if clock is None else {"clock": clock.isoformat()}


def _clock_of_scope(scope: Mapping[str, Any]) -> datetime | None:
    clock = scope.get("clock")
    return None if clock is None else datetime.fromisoformat(clock)
