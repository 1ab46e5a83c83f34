"""Renews a lease while its owner works, and reports when it was lost."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from spark_jobs.state.errors import LeaseLostError
from spark_jobs.state.leases import Lease

log = logging.getLogger(__name__)


class LeaseKeeper:
    """A lease that a thread renews.

    Attributes:
        lease: as last renewed.
    """

    def __init__(self, lease: Lease, *, renew: Callable[[Lease], Lease], seconds: float) -> None:
        self.lease = lease
        self._renew = renew
        self._period = seconds / 3
        self._stopped = threading.Event()
        self._lost: LeaseLostError | None = None
        self._thread = threading.Thread(
            target=self._run, name=f"lease-{lease.resource}", daemon=True
        )

    @property
    def fencing(self) -> int:
        """The fencing number, which grows with each owner."""
        return self.lease.fencing

    def check(self) -> None:
        """Verify the lease right before a commit.

        Raises:
            LeaseLostError: another writer may have it.
        """
        if self._lost is not None:
            raise self._lost
        self.lease = self._renew(self.lease)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop renewing; waits until the thread has ended."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(self._period):
            try:
                self.lease = self._renew(self.lease)
            except LeaseLostError as error:
                self._lost = error
                return
            except Exception as error:  # noqa: BLE001 - the next round may reach the database
                log.warning("lease not renewed resource=%s error=%s", self.lease.resource, error)
