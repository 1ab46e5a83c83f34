"""Runs the steps of a start: each as soon as what it needs is complete, several at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from enum import StrEnum

from spark_jobs.errors import LakehouseError, ProblemsError
from spark_jobs.local.errors import PartFailedError
from spark_jobs.local.parts import Part, Step, Task
from spark_jobs.local.supervisor import Supervisor

POLL_SECONDS = 0.25
# Supervisord's words for a process that it gave up on.
GIVEN_UP = {"FATAL", "UNKNOWN"}
# A part that ends so often while it starts will not mend itself.
STARTS_ALLOWED = 3
TAIL_LINES = 15


class Phase(StrEnum):
    """How far a step has come."""

    WAITING = "waiting"
    PREPARING = "preparing"
    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True)
class Progress:
    """News of one step; ``note`` says what it still lacks."""

    step: str
    phase: Phase
    seconds: float = 0
    note: str = ""


Report = Callable[[Progress], None]


def run_steps(steps: Sequence[Step], supervisor: Supervisor, report: Report) -> None:
    """Run every step, each after its needs; those of its needs that are not given count as met.

    Raises:
        LakehouseError: the failure of a step, or ``ProblemsError`` for several. Steps that were
            under way are finished first, steps that needed the failed one are not begun.
    """
    names = {step.name for step in steps}
    waiting = list(steps)
    complete: set[str] = set()
    failures: list[LakehouseError] = []
    running: dict[Future[None], Step] = {}
    with ThreadPoolExecutor(max_workers=len(steps) or 1, thread_name_prefix="start") as pool:
        while waiting or running:
            if not failures:
                for step in [one for one in waiting if set(one.needs) & names <= complete]:
                    waiting.remove(step)
                    running[pool.submit(run_step, step, supervisor, report)] = step
            if not running:
                break
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                step = running.pop(future)
                try:
                    future.result()
                except LakehouseError as error:
                    failures.append(error)
                else:
                    complete.add(step.name)
    if len(failures) == 1:
        raise failures[0]
    if failures:
        raise ProblemsError(failures)


def run_step(step: Step, supervisor: Supervisor, report: Report) -> None:
    """Run one step to its end."""
    began = time.monotonic()

    def tell(phase: Phase, note: str = "") -> None:
        report(Progress(step.name, phase, time.monotonic() - began, note))

    try:
        match step:
            case Task():
                tell(Phase.STARTING)
                step.run()
            case Part():
                start_part(step, supervisor, tell)
    except BaseException:
        tell(Phase.FAILED)
        raise
    tell(Phase.READY)


def start_part(part: Part, supervisor: Supervisor, tell: Callable[..., None]) -> None:
    """Prepare a part, start its process and wait until it serves."""
    tell(Phase.PREPARING)
    state = supervisor.states()[part.name].state
    if state not in {"STARTING", "RUNNING"}:
        part.prepare()
        supervisor.start_part(part.name)
    wait_ready(part, supervisor, tell)
    part.finish()


def wait_ready(part: Part, supervisor: Supervisor, tell: Callable[..., None]) -> None:
    """Poll a started part until it serves.

    Raises:
        PartFailedError: its process is given up, or it takes too long.
    """
    deadline = time.monotonic() + part.ready_seconds
    starts_before = supervisor.starts()[part.name]
    while (lacks := part.probe()) is not None:
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
        time.sleep(POLL_SECONDS)


def failure(part: Part, supervisor: Supervisor, problem: str) -> PartFailedError:
    """A part's failure with the end of its log."""
    log = supervisor.part_log(part.name)
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return PartFailedError(part.name, problem, log=log, tail="\n".join(lines[-TAIL_LINES:]))
