"""Replaces itself by one part, after ending processes that the part's last run left behind.

The supervisor restarts a part whose process was killed, but not that process's own children: idle
workers would pile up, and a half-dead writer would run beside the new one. Runs as a script with
the standard library only, so that it costs milliseconds.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path


def end_group_of_last_process(record: Path) -> None:
    """Kill the process group that ``record`` names, if it belongs to this session.

    A group's id is not reused while it has members, so a member of this session in that group
    descends from the part's last process.
    """
    with suppress(FileNotFoundError, ValueError):
        group = int(record.read_text())
        if group != os.getpgrp() and group_is_of_session(group, os.getsid(0)):
            os.killpg(group, signal.SIGKILL)


def group_is_of_session(group: int, session: int) -> bool:
    """Whether a live process belongs to both the group and the session."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                process = int(entry.name)
                if os.getpgid(process) == group and os.getsid(process) == session:
                    return True
    return False


def secret_variables(file: str) -> dict[str, str]:
    """The environment variables of a file, by name; none if the file does not exist yet."""
    found: dict[str, str] = {}
    if file:
        with suppress(FileNotFoundError):
            found = json.loads(Path(file).read_text())
    return found


def main(arguments: list[str]) -> None:
    """Record this process's id, which the part keeps, and execute the part's command."""
    record, variables, *command = arguments
    path = Path(record)
    path.parent.mkdir(parents=True, exist_ok=True)
    end_group_of_last_process(path)
    path.write_text(str(os.getpid()))
    os.environ.update(secret_variables(variables))
    os.execvp(command[0], command)  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main(sys.argv[1:])
