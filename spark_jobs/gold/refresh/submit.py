"""A Spark application that stages, audits and publishes a planned attempt.

A blocked result does not fail the application: it is recorded in the ledger, where the next Airflow
task reads it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress

from spark_jobs.gold.recover.recompute import Recomputer
from spark_jobs.gold.refresh.again import audit_on_newest, publish_on_newest, stage_on_newest
from spark_jobs.gold.refresh.steps import Refresher
from spark_jobs.graph.manifest import Manifest
from spark_jobs.planning.decision import ReasonCode
from spark_jobs.quality.errors import GateBlockedError
from spark_jobs.settings import load_settings
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.session import driver_session
from spark_jobs.terminal.leave import Leaving


def main(arguments: Sequence[str]) -> None:
    """Refresh the attempt whose id is the only argument.

    Raises:
        LakehouseError: any error of the steps except a blocked result.
    """
    (attempt_id,) = arguments
    settings = load_settings()
    with ControlStore.open(settings.control_url) as store:
        refresher = Refresher(
            settings,
            Manifest.read(settings.manifest_file),
            store,
            session_factory=lambda own: driver_session(own, f"tidemark {attempt_id}"),
            # The next Airflow task emits the asset event.
            announces=True,
        )
        with suppress(GateBlockedError):
            if store.attempt(attempt_id).reason_code == ReasonCode.BACKFILLED:
                recomputer = Recomputer(refresher)
                recomputer.publish(recomputer.build(attempt_id))
                return
            newest = stage_on_newest(refresher, attempt_id)
            if newest is not None:
                newest = audit_on_newest(refresher, newest)
            if newest is not None:
                publish_on_newest(refresher, newest)


if __name__ == "__main__":
    leaving = Leaving()
    leaving.register()
    main(sys.argv[1:])
    leaving.status = 0
