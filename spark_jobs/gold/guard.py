"""One writer per published table: its lease, and on a local file system its lock as well."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from spark_jobs.gold.context import GoldContext, gold_table
from spark_jobs.state.errors import LeaseTakenError, TableLockedError
from spark_jobs.state.keeper import LeaseKeeper
from spark_jobs.state.locks import table_lock
from spark_jobs.storage.lake import remote_location

_POLL_SECONDS = 0.5


@contextmanager
def sole_writer(context: GoldContext, view: str, *, owner: str) -> Iterator[LeaseKeeper]:
    """Wait for the right to write a view's table, and hold it.

    The same owner is let in again at once, so that a killed attempt's retry does not wait for its
    own lease to run out; Delta's transaction id then makes one commit of the two.

    Raises:
        LeaseTakenError: another writer held it longer than a dead one's lease could last.
        TableLockedError: another process of this machine did.
    """
    table = gold_table(view)
    seconds = context.settings.gold.lease_seconds
    deadline = time.monotonic() + seconds + _POLL_SECONDS
    with ExitStack() as held:
        while True:
            try:
                # The lock first: it goes with its process, so whoever holds it is alive.
                with ExitStack() as taking:
                    if not remote_location(context.lake.root):
                        taking.enter_context(table_lock(context.settings.state / "locks", table))
                    lease = context.store.lease(table, owner=owner, seconds=seconds)
                    keeper = taking.enter_context(lease)
                    held.push(taking.pop_all())
                break
            except (LeaseTakenError, TableLockedError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(_POLL_SECONDS)
        yield keeper
