"""Which processes belong to a stack: all members of its supervisor's session.

Every process that a part starts inherits the session, also when its parent dies, and the kernel
gives no new process a number that a live session still carries. So the supervisor's process id and
start time, kept in a file, name the stack's processes even after the supervisor was killed.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

# Start times are in clock ticks; two readings for one process differ by less than this.
SAME_START_SECONDS = 1.0


@dataclass(frozen=True)
class SessionRecord:
    """A session's leader.

    Attributes:
        pid: the leader's process id, which is also the session's id.
        started: seconds from the machine's start to the leader's, so that a changed clock
            does not matter.
        boot: the machine's or the container's run, because its next one gives the same numbers to
            other processes; "" if it is unknown.
    """

    pid: int
    started: float
    boot: str = ""

    @classmethod
    def of(cls, pid: int) -> SessionRecord:
        """The record of a running leader."""
        return cls(pid, started_after_boot(psutil.Process(pid)), this_boot())

    @classmethod
    def read(cls, path: Path) -> SessionRecord | None:
        """The record in a file; None if the file is missing or unreadable."""
        with suppress(FileNotFoundError, ValueError, TypeError, KeyError):
            return cls(**json.loads(path.read_text()))
        return None

    def write(self, path: Path) -> None:
        """Write the record as JSON; a reader never sees half of it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(asdict(self)))
        fresh.replace(path)

    def leader_alive(self) -> bool:
        """Whether the recorded process still runs."""
        if not self.of_this_boot():
            return False
        with suppress(psutil.Error):
            process = psutil.Process(self.pid)
            same = abs(started_after_boot(process) - self.started) < SAME_START_SECONDS
            return same and process.status() != psutil.STATUS_ZOMBIE
        return False

    def of_this_boot(self) -> bool:
        """Whether its numbers may mean processes that run now."""
        now = this_boot()
        return not (self.boot and now) or self.boot == now

    def members(self) -> list[psutil.Process]:
        """The session's live processes; none if the session's id belongs to another program now."""
        if not self.of_this_boot():
            return []
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error, ProcessLookupError, PermissionError):
                if os.getsid(process.pid) != self.pid or process.pid == os.getpid():
                    continue
                if process.status() == psutil.STATUS_ZOMBIE:
                    continue
                if started_after_boot(process) < self.started - SAME_START_SECONDS:
                    continue
                if process.pid == self.pid and not self.leader_alive():
                    return []
                found.append(process)
        return found


def this_boot() -> str:
    """What no other run of this machine or container has in common; "" if it cannot be read."""
    with suppress(OSError, IndexError):
        machine = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        # A container has a first process of its own, but the machine's id. The 20 values after the
        # command's name end with the start, in clock ticks.
        first = Path("/proc/1/stat").read_text().rpartition(")")[2].split()[19]
        return f"{machine}/{first}"
    return ""


def started_after_boot(process: psutil.Process) -> float:
    """Seconds from the machine's start to the process's."""
    return float(process.create_time() - psutil.boot_time())


def end(record: SessionRecord, *, seconds: float = 10) -> list[int]:
    """Stop every member of the session, by SIGKILL if it does not react.

    Returns:
        The ids of the stopped processes.
    """
    members = record.members()
    ended = [process.pid for process in members]
    for process in members:
        with suppress(psutil.Error):
            process.terminate()
    psutil.wait_procs(members, timeout=seconds)
    # Query the members again: one may have started another in the meantime.
    while left := record.members():
        for process in left:
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(left, timeout=5)
    return ended
