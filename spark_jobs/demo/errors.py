"""Error conditions of the demo and its load."""

from __future__ import annotations

from dataclasses import KW_ONLY

from spark_jobs.errors import LakehouseError, first_line


class RecordsNotDeliveredError(LakehouseError):
    """Kafka did not acknowledge every record of a load run."""

    condition = "RECORDS_NOT_DELIVERED"
    count: int
    reason: str
    primary = "{count} {were} not acknowledged by Kafka"
    detail = "The first one failed with: {reason}."
    hint = 'Look at the broker with "make status" and "make logs PART=kafka".'

    @property
    def were(self) -> str:
        return "records were" if self.count != 1 else "record was"


class ShopUnreachableError(LakehouseError):
    """The shop's database does not answer, or the connection was lost."""

    condition = "SHOP_UNREACHABLE"
    reason: str
    primary = "the shop's database does not answer"
    detail = "The error was: {reason}."
    hint = 'Start the stack with "make up", or look at it with "make status".'


class DemoStepError(LakehouseError):
    """A step of the demo did not finish in time."""

    condition = "DEMO_STEP"
    step: str
    problem: str
    _: KW_ONLY
    hint: str
    primary = "step {step!r} of the demo failed: {problem}"


class AirflowUnreachableError(LakehouseError):
    """Airflow's REST API does not answer, or returns an error."""

    condition = "AIRFLOW_UNREACHABLE"
    reason: str
    primary = "Airflow does not answer"
    detail = "The request failed with: {line}."
    hint = 'Look at it with "make status" and "make logs PART=airflow-api-server".'

    @property
    def line(self) -> str:
        return first_line(self.reason).rstrip(".") or "no reason"
