"""From an observation to a plan: a list of rules in the order of the functions below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from spark_jobs.definitions.vocabulary import Strategy
from spark_jobs.graph.manifest import GoldEntry, Parts
from spark_jobs.planning.changes import ChangeKind, InputChange, InputObservation, input_change
from spark_jobs.planning.decision import (
    Decision,
    Full,
    Incremental,
    Reason,
    ReasonCode,
    Skip,
    decision_word,
    explain,
)
from spark_jobs.planning.experience import (
    NO_EXPERIENCE,
    Forecast,
    PastRefresh,
    forecast,
)
from spark_jobs.planning.rules import (
    Chooser,
    Derived,
    changed_rows,
    choose_rule,
    total_rows,
)
from spark_jobs.planning.vector import VersionVector
from spark_jobs.planning.watermark import Watermark

# Inputs whose published versions can still be read.
_STILL_THERE = frozenset({ChangeKind.CHANGED, ChangeKind.UNCHANGED})


@dataclass(frozen=True)
class Intruder:
    """The newest row change of a published table by another writer."""

    version: int
    operation: str


@dataclass(frozen=True, kw_only=True)
class ViewObservation:
    """The observed state of a published table and its inputs.

    Attributes:
        published: the newest publication; None before the first.
        intruder: a later change by another writer.
        epoch: the view's epoch in the control database.
        past: earlier refreshes of this definition, newest first.
        parked: why refreshes must skip the view now; None if they may run.
        readable: whether the inputs can still be read at the published versions; checked only if
            the definition changed.
        tables: tables that an incremental refresh in Spark would read, see ``forecast``.
        tried_in_vain: whether a full refresh was tried, and did not come to its end.
    """

    published: Watermark | None
    intruder: Intruder | None
    epoch: int
    inputs: tuple[InputObservation, ...]
    past: tuple[PastRefresh, ...] = ()
    parked: Reason | None = None
    readable: bool = False
    tables: int | None = None
    tried_in_vain: bool = False


@dataclass(frozen=True)
class Estimate:
    """What a refresh will read, from the logs of its inputs; ``rows`` is None if unknown.

    Attributes:
        changed: rows that changed since the last publication; None if unknown.
        seconds: the expected time.
    """

    rows: int | None
    bytes: int
    changed: int | None = None
    seconds: Forecast = NO_EXPERIENCE

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object: the attributes by name."""
        return {
            "rows": self.rows,
            "bytes": self.bytes,
            "changed": self.changed,
            "seconds": self.seconds.as_dict(),
        }


@dataclass(frozen=True, kw_only=True)
class RefreshPlan:
    """What will be done about a view in a tick, and why.

    Attributes:
        attempt_id: the attempt in the ledger; "" if the plan is not recorded.
        vector: versions of the inputs, without missing ones.
        clock: the value of ``current_timestamp``.
        expected: expected seconds of a full and an incremental refresh.
    """

    view: str
    tick: str
    attempt_id: str
    fingerprint: str
    decision: Decision
    vector: VersionVector
    changes: tuple[InputChange, ...]
    clock: datetime
    expected: Forecast = NO_EXPERIENCE
    estimate: Estimate | None = None

    @property
    def skips(self) -> bool:
        """Whether nothing is left to do."""
        return isinstance(self.decision, Skip)

    @property
    def is_a_guess(self) -> bool:
        """Whether it is incremental without a sample of that, although a full one is known."""
        known = self.expected.full is not None and self.expected.following is None
        return known and isinstance(self.decision, Incremental)

    @property
    def word(self) -> str:
        """The decision in one word."""
        return decision_word(self.decision)

    @property
    def reason(self) -> Reason:
        return self.decision.reason

    @property
    def line(self) -> str:
        """The decision and its reason in one line."""
        return explain(self.decision)

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object: the attributes, except ``expected``.

        The decision is a word, and its reason is ``reason_code`` and ``reason``; the clock is in
        ISO 8601.
        """
        return {
            "view": self.view,
            "tick": self.tick,
            "attempt_id": self.attempt_id,
            "decision": self.word,
            "reason_code": self.reason.code.value,
            "reason": self.reason.text,
            "fingerprint": self.fingerprint,
            "vector": self.vector.as_dict(),
            "changes": [change.as_dict() for change in self.changes],
            "clock": self.clock.isoformat(),
            "estimate": None if self.estimate is None else self.estimate.as_dict(),
        }


def plan_refresh(
    entry: GoldEntry,
    seen: ViewObservation,
    *,
    tick: str,
    clock: datetime,
    force: bool = False,
    choose: Chooser = choose_rule,
) -> RefreshPlan:
    """Plan the refresh of a view; the caller adds the attempt id and the estimate."""
    changes = tuple(input_change(one) for one in seen.inputs)
    expected = forecast(
        seen.past,
        changed=changed_rows(changes),
        total=total_rows(changes),
        tables=seen.tables,
        tried_in_vain=seen.tried_in_vain,
    )
    pinned = {one.table: one.pinned for one in seen.inputs if one.pinned is not None}
    decision = (
        _parked(seen)
        or _blocked(changes)
        or _rebuilt(entry, seen, changes, force=force)
        or _replaced(changes)
        or _moved(entry, changes, expected, choose)
    )
    vector = VersionVector(pinned)
    if isinstance(decision, Full) and decision.columns is not None and seen.published is not None:
        # The other columns keep the published versions; the next refresh processes newer changes.
        vector = seen.published.vector
    return RefreshPlan(
        view=entry.name,
        tick=tick,
        attempt_id="",
        fingerprint=entry.fingerprint,
        decision=decision,
        vector=vector,
        changes=changes,
        clock=clock,
        expected=expected,
    )


def _parked(seen: ViewObservation) -> Skip | None:
    return None if seen.parked is None else Skip(seen.parked)


def input_missing(changes: Sequence[InputChange]) -> Skip | None:
    """Skip if an input's table does not exist."""
    missing = _of_kind(changes, ChangeKind.MISSING)
    if not missing:
        return None
    names = ", ".join(str(change.table) for change in missing)
    text = f"{names} {'does' if len(missing) == 1 else 'do'} not exist yet, or no longer"
    return Skip(Reason(ReasonCode.INPUT_MISSING, text))


def _blocked(changes: Sequence[InputChange]) -> Skip | None:
    """Reasons to skip whatever was asked for."""
    if (missing := input_missing(changes)) is not None:
        return missing
    if older := _of_kind(changes, ChangeKind.OLDER):
        names = ", ".join(f"{one.table}@{one.before.version}" for one in older if one.before)
        text = f"a later tick has published {names}"
        return Skip(Reason(ReasonCode.NEWER_PUBLISHED, text))
    return None


def _rebuilt(
    entry: GoldEntry, seen: ViewObservation, changes: Sequence[InputChange], *, force: bool
) -> Full | None:
    """Reasons for a full refresh, however little has changed."""
    published, intruder = seen.published, seen.intruder
    if published is None:
        return Full(Reason(ReasonCode.FIRST_BUILD, "first build"))
    if force:
        return Full(Reason(ReasonCode.FORCED, "forced"))
    if intruder is not None:
        return Full(_intrusion(intruder))
    if published.epoch != seen.epoch:
        text = f"epoch {seen.epoch} was begun after epoch {published.epoch} was published"
        return Full(Reason(ReasonCode.EPOCH_BUMPED, text))
    if published.fingerprint != entry.fingerprint:
        columns = changed_columns(entry, published)
        if columns is None or not seen.readable or not _hold_all_columns(changes):
            return Full(Reason(ReasonCode.DEFINITION_CHANGED, "definition changed"))
        what = f"columns {', '.join(columns)} are new or differ" if columns else "columns are gone"
        return Full(Reason(ReasonCode.COLUMNS_CHANGED, f"{what}, the others stay"), columns)
    return None


def _hold_all_columns(changes: Sequence[InputChange]) -> bool:
    """Whether the published versions of the inputs have the columns that a definition reads now."""
    return all(one.kind in _STILL_THERE and not one.movement.reshaped for one in changes)


def changed_columns(entry: GoldEntry, published: Watermark) -> tuple[str, ...] | None:
    """The columns that a new definition adds or changes.

    Returns:
        None if the set of rows may change too, or if the unchanged columns do not identify rows.
    """
    return columns_that_differ(entry, published.parts)


def columns_that_differ(entry: GoldEntry, before: Parts | None) -> tuple[str, ...] | None:
    """The same, given the parts of the earlier definition."""
    now = entry.parts
    key = () if entry.maintenance is None else entry.maintenance.key
    if now is None or before is None or now.rows != before.rows or entry.reads_clock:
        return None
    found = [name for name, digest in now.columns.items() if before.columns.get(name) != digest]
    if entry.strategy is Strategy.FULL or not key or set(key) & set(found):
        return None
    return tuple(found)


def _replaced(changes: Sequence[InputChange]) -> Full | None:
    """A full refresh if an input's change is not a range of versions."""
    if added := _of_kind(changes, ChangeKind.ADDED):
        return Full(Reason(ReasonCode.DEFINITION_CHANGED, f"new input {_names(added)}"))
    if recreated := _of_kind(changes, ChangeKind.RECREATED):
        text = f"{_names(recreated)} was recreated"
        return Full(Reason(ReasonCode.INPUT_RECREATED, text))
    if rewound := _of_kind(changes, ChangeKind.REWOUND):
        text = f"{_names(rewound)} lost versions that were published from"
        return Full(Reason(ReasonCode.INPUT_REWOUND, text))
    return None


def _moved(
    entry: GoldEntry, changes: Sequence[InputChange], expected: Forecast, choose: Chooser
) -> Decision:
    """The decision about changed rows."""
    changed = _of_kind(changes, ChangeKind.CHANGED)
    if not changed and not entry.reads_clock:
        since = ", ".join(f"{one.table}@{one.before.version}" for one in changes if one.before)
        text = f"no upstream change since {since}" if since else "no upstream change"
        return Skip(Reason(ReasonCode.NO_UPSTREAM_CHANGE, text))
    moved = ", ".join(str(change) for change in changed)
    answer = choose(entry, changes, expected)
    if isinstance(answer, Derived):
        text = f"{moved}; {answer.text}" if moved else f"the clock moved; {answer.text}"
        return Incremental(Reason(ReasonCode.INPUT_CHANGED_RULE, text), answer.rule)
    if not changed:
        return Full(Reason(ReasonCode.CLOCK_MOVED, "the view reads the clock"))
    return Full(Reason(answer.reason.code, f"{moved} changed and {answer.reason.text}"))


def _intrusion(intruder: Intruder) -> Reason:
    if intruder.operation == "RESTORE":
        text = f"the published table was restored in version {intruder.version}"
        return Reason(ReasonCode.RESTORED, text)
    text = f"somebody else wrote version {intruder.version} ({intruder.operation})"
    return Reason(ReasonCode.FOREIGN_COMMIT, text)


def _of_kind(changes: Sequence[InputChange], kind: ChangeKind) -> list[InputChange]:
    return [change for change in changes if change.kind is kind]


def _names(changes: Sequence[InputChange]) -> str:
    return ", ".join(str(change.table) for change in changes)
