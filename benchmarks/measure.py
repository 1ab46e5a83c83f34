"""Measures the cost of an action: CPU, time, bytes and memory of a process and its children."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TypeVar

import psutil

from spark_jobs.stack.stack import Stack

T = TypeVar("T")


@dataclass(frozen=True)
class Cost:
    """The cost of one action.

    Attributes:
        cpu: seconds of all threads, user and system, of the process and its children.
        wall: seconds.
        read: bytes through read calls, from the page cache too; memory maps do not count.
        written: bytes through write calls, shuffle files and sockets included.
        peak: the sum of the processes' peak resident memory, in bytes. A JVM rarely returns
            memory.
        others: average number of cores that other processes used in the meantime.
    """

    cpu: float
    wall: float
    read: int
    written: int
    peak: int
    others: float


def measured(action: Callable[[], T], *, process: psutil.Process | None = None) -> tuple[T, Cost]:
    """The value of an action, and its cost.

    Args:
        action: the function to measure.
        process: the process whose cost is measured, with its children; None: this process.
    """
    root = process or psutil.Process()
    for one in tree(root):
        # Reset the peak of the resident memory.
        with suppress(OSError):
            Path(f"/proc/{one.pid}/clear_refs").write_text("5", encoding="ascii")
    busy, before, started = _busy(), _counted(root), perf_counter()
    value = action()
    wall = perf_counter() - started
    after, all_busy = _counted(root), _busy() - busy
    cpu = after.cpu - before.cpu
    return value, Cost(
        cpu=cpu,
        wall=wall,
        read=after.read - before.read,
        written=after.written - before.written,
        peak=sum(_peak(one.pid) for one in tree(root)),
        others=max(0.0, all_busy - cpu) / wall,
    )


def resident(process: psutil.Process) -> int:
    """The resident memory of a process and its children, in bytes."""
    found = 0
    for one in tree(process):
        with suppress(psutil.Error):
            found += one.memory_info().rss
    return found


@dataclass(frozen=True)
class _Counted:
    cpu: float
    read: int
    written: int


def tree(root: psutil.Process) -> Iterator[psutil.Process]:
    """A process and all below it."""
    yield root
    yield from root.children(recursive=True)


def stack_cpu(stack: Stack) -> float:
    """CPU-seconds of the stack's processes, and of those below them that have ended."""
    found: set[psutil.Process] = set()
    for pid in stack.pids():
        with suppress(psutil.Error):
            # Programs of the stack may start processes in sessions of their own.
            found.update(tree(psutil.Process(pid)))
    return sum(map(own_cpu, found))


def own_cpu(process: psutil.Process) -> float:
    """CPU-seconds of a process, and of its children that have ended; 0 if it has ended itself."""
    with suppress(psutil.Error):
        return float(sum(process.cpu_times()[:4]))
    return 0.0


def _counted(root: psutil.Process) -> _Counted:
    cpu, read, written = 0.0, 0, 0
    for process in tree(root):
        with suppress(psutil.Error):
            times, chars = process.cpu_times(), process.io_counters()
            cpu += times.user + times.system
            read += chars.read_chars
            written += chars.write_chars
    return _Counted(cpu, read, written)


def _busy() -> float:
    """Busy seconds of all cores since the start of the machine."""
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system + times.irq + times.softirq)


def _peak(pid: int) -> int:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0
