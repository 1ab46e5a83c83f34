"""What can go wrong while the demo's world is set up or put under load."""

from __future__ import annotations

from spark_jobs.errors import LakehouseError


class RecordsNotDeliveredError(LakehouseError):
    """Kafka did not acknowledge every record of a load run."""

    condition = "RECORDS_NOT_DELIVERED"

    def __init__(self, count: int, reason: str) -> None:
        self.count = count
        super().__init__(
            f"{count} record{'s were' if count != 1 else ' was'} not acknowledged by Kafka",
            detail=f"The first one failed with: {reason}.",
            hint='Look at the broker with "make status" and "make logs PART=kafka".',
        )


class ShopUnreachableError(LakehouseError):
    """The shop's database does not answer, or went away."""

    condition = "SHOP_UNREACHABLE"

    def __init__(self, reason: str) -> None:
        super().__init__(
            "the shop's database does not answer",
            detail=f"It said: {reason}.",
            hint='Start the stack with "make up", or look at it with "make status".',
        )


class DemoStepError(LakehouseError):
    """A step of the demo did not come to its end in time."""

    condition = "DEMO_STEP"

    def __init__(self, step: str, problem: str, *, hint: str) -> None:
        self.step = step
        super().__init__(f"the demo's step {step!r} did not end well: {problem}", hint=hint)


class AirflowUnreachableError(LakehouseError):
    """Airflow's REST interface does not answer as it should."""

    condition = "AIRFLOW_UNREACHABLE"

    def __init__(self, reason: str) -> None:
        super().__init__(
            "Airflow does not answer",
            detail=f"The request failed with: {reason.splitlines()[0].rstrip('.')}.",
            hint='Look at it with "make status" and "make logs PART=airflow-api-server".',
        )
