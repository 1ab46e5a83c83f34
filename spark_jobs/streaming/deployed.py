"""The deployment that the streams run, and its successors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spark_jobs.graph.manifest import Manifest
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.in_force import manifest_of
from spark_jobs.streaming.supervisor import Declared, Flow


@dataclass
class Deployed:
    """Follows the deployment in force.

    Attributes:
        number: of the deployment that is taken up; None: there was none.
        manifest: its manifest, or what was compiled without one.
        take_up: takes up another manifest and returns the flows that should run; idempotent.
    """

    store: ControlStore
    number: int | None
    manifest: Manifest
    take_up: Callable[[Manifest], Sequence[Flow]]

    def newer(self) -> Declared | None:
        """The declarations of a later deployment; None if there is none.

        One that could not be taken up as a whole is taken up again at the next call.
        """
        newest = self.store.number_in_force()
        if newest is None or newest == self.number:
            return None
        found = self.store.deployment_in_force()
        read = manifest_of(found)
        if found is None or read is None:
            return None
        declared = Declared(found.number, self.take_up(read))
        self.number, self.manifest = found.number, read
        return declared
