"""Restricts which accounts may call into this process over PySpark's callback port.

PySpark does not authenticate there: any local account could run a stream's batch function or try
passwords.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

# JVM sockets may be in either table, because they support IPv4 and IPv6.
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_ESTABLISHED = "01"
_LOCAL, _REMOTE, _STATE, _UID = 1, 2, 3, 7


@dataclass(frozen=True)
class Callers:
    """Accepts connections of some accounts only.

    Py4J passes each new connection to its TLS context before it reads anything; this class takes
    the place of that context.

    Attributes:
        uids: allowed user ids.
    """

    uids: frozenset[int]

    def wrap_socket(self, connection: socket.socket, *, server_side: bool) -> socket.socket:
        """The connection, or a closed one in its place: an exception would stop the server."""
        del server_side
        uid = peer(connection)
        if uid in self.uids:
            return connection
        logger.warning("a call from outside was refused uid=%s", "unknown" if uid is None else uid)
        connection.close()
        ended, other = socket.socketpair()
        other.close()
        return ended


def only_from(spark: SparkSession, uids: Collection[int] = ()) -> None:
    """Accept calls into this process only from this account and from ``uids``.

    Args:
        spark: a classic session whose callback port is not open yet.
        uids: further user ids.
    """
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 - Spark has no public way into Java
    if all(one.exists() for one in _TABLES[:1]):
        gateway.python_parameters.ssl_context = Callers(frozenset({os.geteuid(), *uids}))


def peer(connection: socket.socket) -> int | None:
    """The user id that owns the other end of a loopback connection; None if that end has closed.

    The kernel reports an end that is closing as root's.
    """
    here, there = connection.getsockname()[1], connection.getpeername()[1]
    for local, remote, state, uid in _connections():
        if (local, remote, state) == (there, here, _ESTABLISHED):
            return uid
    return None


def _connections() -> Iterator[tuple[int, int, str, int]]:
    for table in _TABLES:
        if table.exists():
            for line in table.read_text().splitlines()[1:]:
                fields = line.split()
                ports = (int(fields[at].rpartition(":")[2], 16) for at in (_LOCAL, _REMOTE))
                yield *ports, fields[_STATE], int(fields[_UID])  # type: ignore[misc]
