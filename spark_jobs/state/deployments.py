"""Deployments: what was applied, when and by whom, and the steps of the current one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, insert, select, update
from sqlalchemy.exc import IntegrityError

from spark_jobs.state.errors import DeploymentOvertakenError
from spark_jobs.state.tables import DEPLOYMENTS
from spark_jobs.state.types import JsonObject, utc_now

DONE = "done"
OPEN = "open"


class DeploymentStatus(StrEnum):
    """How far it has come; a killed one stays APPLYING until it is resumed."""

    APPLYING = "applying"
    APPLIED = "applied"
    FAILED = "failed"
    # A later one took over its open steps.
    SUPERSEDED = "superseded"


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """One apply of the project.

    Attributes:
        number: from 1, consecutive.
        in_force: whether its manifest was put in force.
        manifest: as JSON.
        settings: by key; possible secrets as digests.
        plan: the plan as shown before it began.
        steps: ``open`` or ``done`` by the step's text.
        kept: tables that were removed from the project but still exist, and since when.
    """

    deployment_id: str
    number: int
    status: DeploymentStatus = DeploymentStatus.APPLYING
    in_force: bool = False
    who: str
    manifest: str
    settings: Mapping[str, str] = field(default_factory=dict)
    plan: JsonObject = field(default_factory=dict)
    steps: Mapping[str, str] = field(default_factory=dict)
    kept: Mapping[str, str] = field(default_factory=dict)
    error: str | None = None
    started_at: datetime = field(default_factory=utc_now)
    updated_at: datetime = field(default_factory=utc_now)

    @property
    def open_steps(self) -> tuple[str, ...]:
        """The steps that are not done."""
        return tuple(step for step, state in self.steps.items() if state != DONE)

    @property
    def unfinished(self) -> bool:
        """Whether it should be resumed."""
        return self.status in {DeploymentStatus.APPLYING, DeploymentStatus.FAILED}

    def as_dict(self) -> JsonObject:
        """As a JSON object, without the manifest."""
        found = asdict(self)
        del found["manifest"]
        return {
            **found,
            "status": self.status.value,
            "started_at": self.started_at.isoformat(),
            "updated_at": self.updated_at.isoformat(),
        }


def begin(connection: Connection, deployment: Deployment) -> None:
    """Record a deployment; it takes over the open steps of the previous one.

    Raises:
        DeploymentOvertakenError: another deployment has its number.
    """
    row = {**asdict(deployment), "in_force": int(deployment.in_force)}
    row["steps"] = [[step, state] for step, state in deployment.steps.items()]
    try:
        connection.execute(insert(DEPLOYMENTS).values(row))
    except IntegrityError as error:
        raise DeploymentOvertakenError(deployment.deployment_id) from error
    connection.execute(
        update(DEPLOYMENTS)
        .where(DEPLOYMENTS.c.number < deployment.number)
        .where(DEPLOYMENTS.c.status.in_([DeploymentStatus.APPLYING, DeploymentStatus.FAILED]))
        .values(status=DeploymentStatus.SUPERSEDED, updated_at=utc_now())
    )


def change(connection: Connection, deployment_id: str, values: Mapping[str, Any]) -> None:
    """Change some columns of a deployment's row, given by name, and ``updated_at``."""
    connection.execute(
        update(DEPLOYMENTS)
        .where(DEPLOYMENTS.c.deployment_id == deployment_id)
        .values({**values, "updated_at": utc_now()})
    )


def step_done(connection: Connection, deployment_id: str, *done: str) -> None:
    """Record that steps are done."""
    # Locked: the apply and a new snapshot may do so at the same time.
    mine = DEPLOYMENTS.c.deployment_id == deployment_id
    steps = connection.scalar(select(DEPLOYMENTS.c.steps).where(mine).with_for_update())
    marked = [[one, DONE if one in done else state] for one, state in steps or ()]
    change(connection, deployment_id, {"steps": marked})


def get(connection: Connection, deployment_id: str) -> Deployment | None:
    """A deployment, or None."""
    return _first(connection, DEPLOYMENTS.c.deployment_id == deployment_id)


def in_force(connection: Connection) -> Deployment | None:
    """The newest deployment in force; None if nothing was applied."""
    return _first(connection, DEPLOYMENTS.c.in_force == 1)


def number_in_force(connection: Connection) -> int | None:
    """Its number; cheaper, because the manifest is not read."""
    number: int | None = connection.scalar(_of_newest_in_force(DEPLOYMENTS.c.number))
    return number


def id_in_force(connection: Connection) -> str | None:
    """Its id, as cheaply."""
    deployment: str | None = connection.scalar(_of_newest_in_force(DEPLOYMENTS.c.deployment_id))
    return deployment


def _of_newest_in_force(column: ColumnElement[Any]) -> Select[Any]:
    return (
        select(column)
        .where(DEPLOYMENTS.c.in_force == 1)
        .order_by(DEPLOYMENTS.c.number.desc())
        .limit(1)
    )


def newest(connection: Connection) -> Deployment | None:
    """The deployment with the highest number, in force or not."""
    return _first(connection, DEPLOYMENTS.c.number > 0)


def history(connection: Connection, *, limit: int, before: int | None = None) -> list[Deployment]:
    """Deployments, newest first.

    Args:
        connection: to the control database.
        limit: how many at most.
        before: only those with a smaller number.
    """
    found = select(DEPLOYMENTS).order_by(DEPLOYMENTS.c.number.desc()).limit(limit)
    if before is not None:
        found = found.where(DEPLOYMENTS.c.number < before)
    return [_read(row) for row in connection.execute(found).mappings()]


def _first(connection: Connection, condition: Any) -> Deployment | None:
    rows = connection.execute(
        select(DEPLOYMENTS).where(condition).order_by(DEPLOYMENTS.c.number.desc()).limit(1)
    ).mappings()
    return next((_read(row) for row in rows), None)


def _read(row: RowMapping) -> Deployment:
    return Deployment(
        **{
            **row,
            "status": DeploymentStatus(row["status"]),
            "in_force": bool(row["in_force"]),
            # A list, because PostgreSQL's JSONB does not keep the order of keys.
            "steps": dict(row["steps"]),
        }
    )
