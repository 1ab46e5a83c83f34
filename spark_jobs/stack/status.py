"""The status of each part: whether it runs and is ready, since when, and at which address."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from spark_jobs.stack.errors import PartFailedError
from spark_jobs.stack.parts import Part
from spark_jobs.stack.supervisor import ProcessState, Supervisor

STOPPED = "stopped"


@dataclass(frozen=True)
class PartStatus:
    """One part of the stack as it is now.

    Attributes:
        state: supervisord's state in lower case, for example ``running`` or ``stopped``.
        ready: whether its probe succeeds.
        lacks: why it is not ready although it runs.
        restarts: number of restarts since the stack was started.
    """

    part: str
    state: str
    ready: bool
    lacks: str | None = None
    pid: int | None = None
    uptime_seconds: int | None = None
    ports: dict[str, int] = field(default_factory=dict)
    restarts: int = 0


def part_statuses(parts: Sequence[Part], supervisor: Supervisor) -> list[PartStatus]:
    """The status of every part; probes run concurrently."""
    if not supervisor.answers():
        return [stopped(part) for part in parts]
    try:
        processes = supervisor.states()
    except PartFailedError:
        # It ended since it answered.
        return [stopped(part) for part in parts]
    starts = supervisor.starts()
    with ThreadPoolExecutor(max_workers=len(parts), thread_name_prefix="status") as pool:
        return list(
            pool.map(lambda part: status(part, processes.get(part.name), starts[part.name]), parts)
        )


def status(part: Part, process: ProcessState | None, starts: int) -> PartStatus:
    """One part's status."""
    if process is None or not process.pid:
        return stopped(part, process.state.lower() if process else STOPPED, starts)
    lacks = part.probe()
    return PartStatus(
        part=part.name,
        state=process.state.lower(),
        ready=lacks is None,
        lacks=lacks,
        pid=process.pid,
        uptime_seconds=process.now - process.started_at,
        ports=dict(part.ports),
        restarts=max(0, starts - 1),
    )


def stopped(part: Part, state: str = STOPPED, starts: int = 0) -> PartStatus:
    """The status of a part without a process."""
    return PartStatus(
        part=part.name,
        state=state,
        ready=False,
        ports=dict(part.ports),
        restarts=max(0, starts - 1),
    )
