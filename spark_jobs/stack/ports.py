"""Loopback ports: which are free, and which processes use the others."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterable, Mapping
from contextlib import suppress

import psutil

from spark_jobs.stack.errors import PortsTakenError, TakenPort

LOOPBACK = "127.0.0.1"


def check_ports(ports: Mapping[str, int], *, own_pids: Iterable[int] = ()) -> None:
    """Check that each port can be bound, or is used by one of ``own_pids``.

    Args:
        ports: port by the setting that names it.
        own_pids: processes of this stack, which may use their ports.

    Raises:
        PortsTakenError: names every taken port at once.
    """
    taken = {setting: port for setting, port in ports.items() if not bindable(port)}
    if not taken:
        return
    holders = listeners()
    own = set(own_pids)
    # Another process may listen on the port of another address.
    foreign = [
        TakenPort(setting, port, describe(next(iter(holders.get(port, [])), None)))
        for setting, port in taken.items()
        if own.isdisjoint(holders.get(port, []))
    ]
    if foreign:
        raise PortsTakenError(foreign)


def bindable(port: int) -> bool:
    """Whether a server could listen on the port now; connections in TIME_WAIT do not count."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            if error.errno in {errno.EADDRINUSE, errno.EACCES}:
                return False
            raise
    return True


def listening(port: int, *, timeout: float = 0.5) -> bool:
    """Whether something accepts connections on the port."""
    with suppress(OSError), socket.create_connection((LOOPBACK, port), timeout=timeout):
        return True
    return False


def listeners() -> dict[int, list[int]]:
    """Ids of the processes that listen on each TCP port, as far as the system shows them."""
    found: dict[int, list[int]] = {}
    with suppress(psutil.AccessDenied):
        for one in psutil.net_connections("tcp"):
            if one.status == psutil.CONN_LISTEN and one.pid is not None:
                found.setdefault(one.laddr.port, []).append(one.pid)
    return found


def describe(pid: int | None) -> str | None:
    """A process's name and command for a message, or None if it is unknown."""
    if pid is None:
        return None
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        return f"{process.name()!r} (process {pid}, user {process.username()})"
    return f"process {pid}"
