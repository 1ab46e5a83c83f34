"""From observations to a plan: the order of the questions is the order of the functions here."""

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

# The tables of a publication that can be read again as they were.
_STILL_THERE = frozenset({ChangeKind.CHANGED, ChangeKind.UNCHANGED})


@dataclass(frozen=True)
class Intruder:
    """The newest change of rows on a published table that no refresh made."""

    version: int
    operation: str


@dataclass(frozen=True, kw_only=True)
class ViewObservation:
    """A published table and its inputs as they were found.

    Attributes:
        published: the newest publication, None before the first.
        intruder: a change that somebody else made after it.
        epoch: the view's epoch in the control database.
        past: earlier refreshes of this definition that published, the newest first.
        parked: why no refresh may touch the view now; None where one may.
        readable: whether the inputs can still be read at the versions that were published from;
            looked at only where the definition changed.
    """

    published: Watermark | None
    intruder: Intruder | None
    epoch: int
    inputs: tuple[InputObservation, ...]
    past: tuple[PastRefresh, ...] = ()
    parked: Reason | None = None
    readable: bool = False


@dataclass(frozen=True)
class Estimate:
    """What a refresh will read, from the logs of its inputs; rows is None where a log has none.

    Attributes:
        changed: rows that changed since the last publication; None where a log does not say.
        seconds: what it is likely to take.
    """

    rows: int | None
    bytes: int
    changed: int | None = None
    seconds: Forecast = NO_EXPERIENCE

    def as_dict(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "bytes": self.bytes,
            "changed": self.changed,
            "seconds": self.seconds.as_dict(),
        }


@dataclass(frozen=True, kw_only=True)
class RefreshPlan:
    """What will be done about one view in one tick, and why.

    Attributes:
        attempt_id: the attempt in the ledger; "" for a plan that only explains.
        vector: the inputs' versions; inputs that are missing are not in it.
        clock: the instant that ``current_timestamp`` stands for.
        expected: what either way is likely to take.
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
        """The form for programs."""
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
    """Decide what to do about a view; the attempt id and the estimate are the caller's to add."""
    changes = tuple(input_change(one) for one in seen.inputs)
    expected = forecast(seen.past, changed=changed_rows(changes), total=total_rows(changes))
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
        # The other columns are those of the published versions; what came since is followed next.
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
    """The decision where the table of an input is not there."""
    missing = _of_kind(changes, ChangeKind.MISSING)
    if not missing:
        return None
    names = ", ".join(str(change.table) for change in missing)
    text = f"no table at {names}; the published content is kept"
    return Skip(Reason(ReasonCode.INPUT_MISSING, text))


def _blocked(changes: Sequence[InputChange]) -> Skip | None:
    """Reasons not to compute anything, whatever was asked for."""
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
    """Reasons to compute the whole result, however little has moved."""
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
        kinds = {one.kind for one in changes}
        if columns is None or not seen.readable or not kinds <= _STILL_THERE:
            return Full(Reason(ReasonCode.DEFINITION_CHANGED, "definition changed"))
        what = f"columns {', '.join(columns)} are new or differ" if columns else "columns are gone"
        return Full(Reason(ReasonCode.COLUMNS_CHANGED, f"{what}, the others stay"), columns)
    return None


def changed_columns(entry: GoldEntry, published: Watermark) -> tuple[str, ...] | None:
    """The columns that a definition adds to what is published, or gives another meaning.

    Returns:
        None where the rows may be others too, or cannot be told apart by columns that stay.
    """
    return columns_that_differ(entry, published.parts)


def columns_that_differ(entry: GoldEntry, before: Parts | None) -> tuple[str, ...] | None:
    """The same, against the parts of the earlier definition."""
    now = entry.parts
    key = () if entry.maintenance is None else entry.maintenance.key
    if now is None or before is None or now.rows != before.rows or entry.reads_clock:
        return None
    found = [name for name, digest in now.columns.items() if before.columns.get(name) != digest]
    if entry.strategy is Strategy.FULL or not key or set(key) & set(found):
        return None
    return tuple(found)


def _replaced(changes: Sequence[InputChange]) -> Full | None:
    """Inputs whose changes no range of versions describes."""
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
    """What to do about changes of rows."""
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
