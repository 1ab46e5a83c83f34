"""Who may call functions of this process over the port that PySpark opens for its JVM.

PySpark asks nobody there: whoever connects could call a batch of a stream, or try passwords.
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

# A JVM connects with a socket for both versions of the protocol.
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_ESTABLISHED = "01"
_LOCAL, _REMOTE, _STATE, _UID = 1, 2, 3, 7


@dataclass(frozen=True)
class Callers:
    """Lets connections of some accounts in.

    Py4J hands each new connection to what would encrypt it; that is the one place where it can be
    looked at before anything is read.

    Attributes:
        uids: the accounts.
    """

    uids: frozenset[int]

    def wrap_socket(self, given: socket.socket, *, server_side: bool) -> socket.socket:
        """The connection, or in its place one that has ended: an error would end the server."""
        del server_side
        uid = peer(given)
        if uid in self.uids:
            return given
        logger.warning("a call from outside was refused uid=%s", "unknown" if uid is None else uid)
        given.close()
        ended, other = socket.socketpair()
        other.close()
        return ended


def only_from(spark: SparkSession, uids: Collection[int] = ()) -> None:
    """Let none but this account and some others call functions of this process.

    Args:
        spark: a classic session that has not opened its port yet.
        uids: the others.
    """
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 - Spark has no public way into Java
    if all(one.exists() for one in _TABLES[:1]):
        gateway.python_parameters.ssl_context = Callers(frozenset({os.geteuid(), *uids}))


def peer(given: socket.socket) -> int | None:
    """Which account the other end of a connection on this machine is of; None where it has gone.

    An end that is being closed belongs to nobody any more, and the kernel calls it root's.
    """
    here, there = given.getsockname()[1], given.getpeername()[1]
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
