"""One writer per silver table at a time: its stream's batch, or a command such as reprocessing.

A writer holds the guard from its first read to its last commit, so that what it read is still true
when it writes. On a local file system a lock file is enough; elsewhere a lease keeps machines
apart.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from spark_jobs.names import TableName
from spark_jobs.settings import Settings
from spark_jobs.state.errors import LeaseTakenError, TableLockedError
from spark_jobs.state.locks import table_lock
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.lake import lock_directory, remote_location

POLL_SECONDS = 0.2
WAIT_SECONDS = 600.0

Guard = Callable[[], AbstractContextManager[object]]


@contextmanager
def table_guard(settings: Settings, store: ControlStore, table: TableName) -> Iterator[None]:
    """Wait for the right to write a table, and hold it while the context lasts.

    Raises:
        LeaseTakenError, TableLockedError: another writer held it until the timeout.
    """
    deadline = time.monotonic() + WAIT_SECONDS
    with ExitStack() as held:
        while True:
            try:
                held.enter_context(_attempt(settings, store, table))
                break
            except (LeaseTakenError, TableLockedError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(POLL_SECONDS)
        yield


def _attempt(
    settings: Settings, store: ControlStore, table: TableName
) -> AbstractContextManager[object]:
    if remote_location(settings.lake):
        owner = f"{socket.gethostname()}:{os.getpid()}"
        return store.lease(table, owner=owner, seconds=settings.gold.lease_seconds)
    return table_lock(lock_directory(settings.lake, settings.state), table)
