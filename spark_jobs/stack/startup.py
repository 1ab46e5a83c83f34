"""Runs the steps of a start: each as soon as what it needs is complete, several at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from enum import StrEnum
from graphlib import TopologicalSorter
from threading import Event

from spark_jobs.errors import LakehouseError, ProblemsError
from spark_jobs.stack.errors import PartFailedError
from spark_jobs.stack.parts import Part, Step, Task
from spark_jobs.stack.supervisor import Supervisor

POLL_SECONDS = 0.25
# Supervisord's states of a process that it will not restart.
GIVEN_UP = {"FATAL", "UNKNOWN"}
# A part that exits this often during its start will not recover by itself.
STARTS_ALLOWED = 3
TAIL_LINES = 15


class Phase(StrEnum):
    """The phase of a step."""

    WAITING = "waiting"
    PREPARING = "preparing"
    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True)
class Progress:
    """The progress of one step; ``note`` says why it is not ready."""

    step: str
    phase: Phase
    seconds: float = 0
    note: str = ""


Report = Callable[[Progress], None]


class AbandonedError(Exception):
    """A step that was cancelled because another one failed."""


def run_steps(steps: Sequence[Step], supervisor: Supervisor, report: Report) -> None:
    """Run every step as soon as what it needs is complete.

    Raises:
        LakehouseError: the failure of a step, or ``ProblemsError`` for several. The other steps
            are cancelled; running processes keep running.
    """
    by_name = {step.name: step for step in steps}
    order = TopologicalSorter({step.name: by_name.keys() & set(step.needs) for step in steps})
    order.prepare()
    abandon = Event()
    failures: list[LakehouseError] = []
    running: dict[Future[None], str] = {}
    with ThreadPoolExecutor(max_workers=len(steps) or 1, thread_name_prefix="start") as pool:
        try:
            while order.is_active() and not failures:
                for name in order.get_ready():
                    step = by_name[name]
                    running[pool.submit(run_step, step, supervisor, report, abandon)] = name
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    name = running.pop(future)
                    if failed := failure_of(future):
                        failures.append(failed)
                    else:
                        order.done(name)
        finally:
            abandon.set()
    failures += filter(None, map(failure_of, running))
    if len(failures) == 1:
        raise failures[0]
    if failures:
        raise ProblemsError(failures)


def failure_of(future: Future[None]) -> LakehouseError | None:
    """A finished step's failure if it is for the user; any other error is raised."""
    error = future.exception()
    if error is None or isinstance(error, AbandonedError):
        return None
    if isinstance(error, LakehouseError):
        return error
    raise error


def run_step(step: Step, supervisor: Supervisor, report: Report, abandon: Event) -> None:
    """Run one step to its end, or until ``abandon`` is set."""
    began = time.monotonic()

    def tell(phase: Phase, note: str = "") -> None:
        report(Progress(step.name, phase, time.monotonic() - began, note))

    try:
        match step:
            case Task():
                tell(Phase.STARTING)
                step.run()
            case Part():
                start_part(step, supervisor, tell, abandon)
    except AbandonedError:
        tell(Phase.WAITING, "given up")
        raise
    except BaseException:
        tell(Phase.FAILED)
        raise
    tell(Phase.READY)


def start_part(
    part: Part, supervisor: Supervisor, tell: Callable[..., None], abandon: Event
) -> None:
    """Prepare a part, start its process and wait until it is ready.

    Raises:
        PartFailedError: it ended, or was not ready in time.
    """
    tell(Phase.PREPARING)
    state = supervisor.states()[part.name].state
    if state not in {"STARTING", "RUNNING"}:
        part.prepare()
        supervisor.start_part(part.name)
    wait_ready(part, supervisor, tell, abandon)
    part.finish()


def wait_ready(
    part: Part, supervisor: Supervisor, tell: Callable[..., None], abandon: Event
) -> None:
    """Poll a started part until other steps may use it.

    Raises:
        PartFailedError: its process does not start, or takes too long.
    """
    deadline = time.monotonic() + part.ready_seconds
    starts_before = supervisor.starts()[part.name]
    serves = part.serves or part.probe
    while (lacks := serves()) is not None:
        tell(Phase.STARTING, lacks)
        process = supervisor.states()[part.name]
        if process.state in GIVEN_UP:
            problem = f"does not stay up{': ' + process.problem if process.problem else ''}"
            raise failure(part, supervisor, problem)
        if supervisor.starts()[part.name] - starts_before > STARTS_ALLOWED:
            raise failure(part, supervisor, f"ended {STARTS_ALLOWED} times while it started")
        if time.monotonic() > deadline:
            problem = f"is not ready after {part.ready_seconds:.0f} s: {lacks}"
            raise failure(part, supervisor, problem)
        if abandon.wait(POLL_SECONDS):
            raise AbandonedError


def failure(part: Part, supervisor: Supervisor, problem: str) -> PartFailedError:
    """A part's failure with the end of its log."""
    log = supervisor.part_log(part.name)
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return PartFailedError(part.name, problem, log=log, tail="\n".join(lines[-TAIL_LINES:]))
