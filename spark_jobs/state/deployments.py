"""What was applied, when and by whom, and how far the one that runs now has come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, RowMapping, insert, select, update
from sqlalchemy.exc import IntegrityError

from spark_jobs.state.errors import DeploymentOvertakenError
from spark_jobs.state.tables import DEPLOYMENTS
from spark_jobs.state.types import JsonObject, utc_now

DONE = "done"
OPEN = "open"


class DeploymentStatus(StrEnum):
    """How far it came; one that was killed stays applying until it is taken up again."""

    APPLYING = "applying"
    APPLIED = "applied"
    FAILED = "failed"
    # A later one took over what it left to do.
    SUPERSEDED = "superseded"


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """One apply.

    Attributes:
        number: from 1; the next one's is higher by one.
        in_force: whether the parts were told of its manifest.
        manifest: as JSON.
        settings: by key; of what may be secret a digest.
        plan: what was shown before it began.
        steps: ``open`` or ``done`` by the step's text.
        kept: tables that were removed from the project and are still there, and since when.
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
        """Whether somebody should take it up again."""
        return self.status in {DeploymentStatus.APPLYING, DeploymentStatus.FAILED}

    def as_dict(self) -> JsonObject:
        """The form for programs, without the manifest."""
        found = asdict(self)
        del found["manifest"]
        return {
            **found,
            "status": self.status.value,
            "started_at": self.started_at.isoformat(),
            "updated_at": self.updated_at.isoformat(),
        }


def begin(connection: Connection, deployment: Deployment) -> None:
    """Record a deployment; the one before hands its open steps over.

    Raises:
        DeploymentOvertakenError: another one has its number.
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
    """Change some columns of a deployment's row."""
    connection.execute(
        update(DEPLOYMENTS)
        .where(DEPLOYMENTS.c.deployment_id == deployment_id)
        .values({**values, "updated_at": utc_now()})
    )


def step_done(connection: Connection, deployment_id: str, step: str) -> None:
    """Note that a step is done; only the deployment's own process calls it."""
    found = get(connection, deployment_id)
    steps = found.steps if found else {}
    marked = [[one, DONE if one == step else state] for one, state in steps.items()]
    change(connection, deployment_id, {"steps": marked})


def get(connection: Connection, deployment_id: str) -> Deployment | None:
    """A deployment, or None."""
    return _first(connection, DEPLOYMENTS.c.deployment_id == deployment_id)


def in_force(connection: Connection) -> Deployment | None:
    """The newest deployment that the parts were told of; None where nothing was applied."""
    return _first(connection, DEPLOYMENTS.c.in_force == 1)


def number_in_force(connection: Connection) -> int | None:
    """Its number; cheaper, because its manifest is not read."""
    return connection.scalar(
        select(DEPLOYMENTS.c.number)
        .where(DEPLOYMENTS.c.in_force == 1)
        .order_by(DEPLOYMENTS.c.number.desc())
        .limit(1)
    )


def newest(connection: Connection) -> Deployment | None:
    """The deployment with the highest number, in force or not."""
    return _first(connection, DEPLOYMENTS.c.number > 0)


def history(connection: Connection, *, limit: int) -> list[Deployment]:
    """Deployments, the newest first."""
    rows = connection.execute(
        select(DEPLOYMENTS).order_by(DEPLOYMENTS.c.number.desc()).limit(limit)
    ).mappings()
    return [_read(row) for row in rows]


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
