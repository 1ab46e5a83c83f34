"""Changes that the connector could not read and skipped, so that it can process the others.

Debezium reports such a change only in the worker's log. The logging configuration also writes these
lines to a separate file, where they stay until a person has acknowledged them.
"""

from __future__ import annotations

import json
import re
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

_LINE = re.compile(r"^(\S+) Error while processing event at offset \{(.*)\} ?(\S*)$")
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


def skipped(settings: Settings) -> list[Skipped]:
    """All skipped changes, acknowledged or not, in the order of the log."""
    path = skipped_file(settings)
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    found = [_read(match) for line in lines if (match := _LINE.match(line))]
    return [one for one in found if one.cause != _STOPPED]


def unanswered(settings: Settings) -> list[Skipped]:
    """The changes that nobody has acknowledged yet."""
    return skipped(settings)[_answered(settings) :]


def answer(settings: Settings, *, by: str, reason: str) -> int:
    """Record that all changes so far are acknowledged; returns how many of them are new."""
    changes, before = len(skipped(settings)), _answered(settings)
    if changes > before:
        note = {"at": utc_now().isoformat(), "by": by, "reason": reason, "changes": changes}
        with _answers(settings).open("a", encoding="utf-8") as file:
            file.write(json.dumps(note) + "\n")
    return changes - before


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
        cause=line[3],
    )


def _answered(settings: Settings) -> int:
    path = _answers(settings)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    for line in reversed(lines):
        # A full disk may have cut off one, and the next begins in the same line.
        for text in (line, line[max(0, line.rfind('{"at": ')) :]):
            with suppress(ValueError):
                return int(json.loads(text)["changes"])
    return 0


def _answers(settings: Settings) -> Path:
    return skipped_file(settings).with_suffix(".answered")
