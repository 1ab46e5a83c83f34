"""Changes that the connector could not read and skipped, so that it can process the others.

Debezium reports such a change only in the worker's log. The logging configuration also writes these
lines to a separate file, where they stay until a person has acknowledged them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx

from spark_jobs.access.errors import SecretMissingError
from spark_jobs.access.source_log import place
from spark_jobs.settings import Settings
from spark_jobs.stack.connect import (
    client,
    connector_status,
    first_trace_line,
    is_halted,
    skipped_file,
    states,
    worker_files,
)
from spark_jobs.state.types import utc_now

# A full disk may have cut off one, and the next begins in the same line.
_START = r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) Error while processing event at offset \{"
_CHANGE = re.compile(rf"{_START}(.*?)(?:\}} ?(\S*)$|(?={_START})|$)", re.MULTILINE)
_FIELD = re.compile(r"(\w+)=(\w+)")

# A task that is stopped while its queue is full: it reads the change again when it starts.
_STOPPED = "java.lang.InterruptedException"
_HALTED = "is stopped: by a person, or by a `tidemark source resnapshot` that did not finish"


@dataclass(frozen=True)
class Skipped:
    """A change that was skipped.

    Attributes:
        at: when the connector skipped it.
        lsn: its position in PostgreSQL's log, in PostgreSQL's format; "" if unknown.
        transaction: the id of its transaction.
        committed_at: when the transaction was committed.
        operation: INSERT, UPDATE, DELETE or TRUNCATE.
        cause: class of the exception; "" if an earlier release recorded the change.
    """

    at: datetime
    lsn: str
    transaction: str
    committed_at: datetime | None
    operation: str
    cause: str

    def as_dict(self) -> dict[str, str | None]:
        """As a JSON object; ``position`` is the ``lsn``."""
        return {
            "at": self.at.isoformat(),
            "position": self.lsn,
            "operation": self.operation,
            "transaction": self.transaction,
            "committed_at": self.committed_at.isoformat() if self.committed_at else None,
            "cause": self.cause,
        }


def skipped(settings: Settings) -> list[Skipped]:
    """All skipped changes, acknowledged or not, in the order of the log."""
    path = skipped_file(settings)
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8", errors="replace")
    found = [_read(match) for match in _CHANGE.finditer(text)]
    return [one for one in found if one.cause != _STOPPED]


def unanswered(settings: Settings) -> list[Skipped]:
    """The changes that nobody has acknowledged yet."""
    found = skipped(settings)
    return found[_answered(settings, found) :]


def answer(settings: Settings, *, by: str, reason: str, through: Skipped | None = None) -> int:
    """Record that changes are acknowledged; returns how many of them are new.

    Args:
        settings: of the stack.
        by: who acknowledges them.
        reason: how they were handled.
        through: the last of them; None for all so far.
    """
    changes = skipped(settings)
    before = _answered(settings, changes)
    end = len(changes) if through is None else _place(changes, _name(through))
    if end > before:
        note = {
            "at": utc_now().isoformat(),
            "by": by,
            "reason": reason,
            "changes": end,
            "last": _name(changes[end - 1]),
        }
        with _answers(settings).open("a", encoding="utf-8") as file:
            file.write(json.dumps(note) + "\n")
    return max(0, end - before)


def capture_problem(settings: Settings) -> str | None:
    """Why changes of the database do not reach bronze, as far as this machine can see; or None."""
    down = _down(settings)
    if down is not None:
        return down
    left = unanswered(settings)
    if not left:
        return None
    last = left[-1]
    count = "1 change" if len(left) == 1 else f"{len(left):,} changes"
    return f"left out {count} that it cannot read, the last at {last.lsn or 'an unknown place'}"


def _down(settings: Settings) -> str | None:
    """Why the connector does not run, if a worker says so."""
    # A worker without a configuration here belongs to another stack.
    if not settings.kafka_connect.url and not any(one.exists() for one in worker_files(settings)):
        return None
    try:
        with client(settings) as api:
            status = connector_status(api)
    except (httpx.HTTPError, SecretMissingError):
        # It does not answer, or an older release without certificates started it.
        return None
    if status and "FAILED" in states(status):
        return f"failed: {first_trace_line(status)}"
    return _HALTED if status and is_halted(status) else None


def _read(line: re.Match[str]) -> Skipped:
    fields = dict(_FIELD.findall(line[2]))
    micros = fields.get("ts_usec", "")
    return Skipped(
        at=datetime.fromisoformat(line[1]),
        lsn=place(int(fields["lsn"])) if fields.get("lsn", "").isdigit() else "",
        transaction=fields.get("txId", ""),
        committed_at=datetime.fromtimestamp(int(micros) / 1e6, UTC) if micros.isdigit() else None,
        operation=fields.get("messageType", ""),
        cause=line[3] or "",
    )


def _answered(settings: Settings, changes: Sequence[Skipped]) -> int:
    """How many of all changes are acknowledged, by the last note that can be read."""
    path = _answers(settings)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    for line in reversed(lines):
        # A full disk may have cut off one, and the next begins in the same line.
        for text in (line, line[max(0, line.rfind('{"at": ')) :]):
            with suppress(ValueError):
                note = json.loads(text)
                # A log that was deleted begins again, with changes that nobody has seen.
                if "last" in note:
                    return _place(changes, note["last"])
                count = int(note["changes"])
                return count if count <= len(changes) else 0
    return 0


def _place(changes: Sequence[Skipped], name: str) -> int:
    """How many changes there are up to the one of a name; 0 if there is none."""
    return max((at for at, one in enumerate(changes, 1) if _name(one) == name), default=0)


def _name(change: Skipped) -> str:
    return f"{change.at.isoformat()} {change.lsn}".rstrip()


def _answers(settings: Settings) -> Path:
    return skipped_file(settings).with_suffix(".answered")
