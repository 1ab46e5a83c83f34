"""One writer per published table: a lease, and on a local file system also a lock file."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from spark_jobs.gold.base.context import GoldContext, gold_table
from spark_jobs.names import TableName
from spark_jobs.state.errors import LeaseTakenError, TableLockedError
from spark_jobs.state.keeper import LeaseKeeper
from spark_jobs.state.locks import table_lock
from spark_jobs.storage.lake import lock_directory, remote_location, this_machine

_POLL_SECONDS = 0.5
log = logging.getLogger(__name__)


def sole_writer(
    context: GoldContext, view: str, *, attempt_id: str
) -> AbstractContextManager[LeaseKeeper]:
    """Wait for the right to write a view's table, and hold it while the context lasts.

    Without a local file system the owner is the attempt: a retry may run beside its first try, and
    Delta's transaction id makes one commit of the two.

    Raises:
        LeaseTakenError: another writer held the lease longer than a dead writer's lease lasts.
        TableLockedError: another process of this machine held the lock that long.
    """
    return alone(context, gold_table(view), owner=attempt_id)


@contextmanager
def alone(context: GoldContext, resource: TableName | str, *, owner: str) -> Iterator[LeaseKeeper]:
    """Wait for a lease, and hold it while the context lasts.

    The owner of a lease gets it again at once. On a local file system the owner is this machine,
    and a lock keeps its processes apart; a lock ends with its process, so nobody waits for the
    lease of a killed one.

    Args:
        context: settings and lake of the project.
        resource: a table, or another name of what has one writer.
        owner: the owner without a local file system.

    Raises:
        LeaseTakenError: another owner held the lease longer than a dead one's lease lasts.
        TableLockedError: another process of this machine held the lock that long.
    """
    local = not remote_location(context.lake.root)
    if local:
        owner = this_machine(context.settings.state)
    locks = lock_directory(context.lake.root, context.settings.state)
    seconds = context.settings.gold.lease_seconds
    deadline = time.monotonic() + seconds + _POLL_SECONDS
    waits = False
    with ExitStack() as held:
        while True:
            try:
                # The lock first: it ends with its process, so its holder is alive.
                with ExitStack() as taking:
                    if local:
                        taking.enter_context(table_lock(locks, resource))
                    lease = context.store.lease(resource, owner=owner, seconds=seconds)
                    keeper = taking.enter_context(lease)
                    held.push(taking.pop_all())
                break
            except (LeaseTakenError, TableLockedError) as taken:
                if time.monotonic() > deadline:
                    raise
                if not waits:
                    log.info("waiting table=%s held_by=%s", resource, taken.holder)
                waits = True
                time.sleep(_POLL_SECONDS)
        yield keeper
