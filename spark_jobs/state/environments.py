"""Virtual environments: their views, base, and progress."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from sqlalchemy import Connection, RowMapping, delete, select

from spark_jobs.state.tables import ENVIRONMENTS
from spark_jobs.state.types import JsonObject, utc_now
from spark_jobs.state.upsert import insert_or_replace


class EnvironmentStatus(StrEnum):
    """How far an environment has come."""

    # Some views are not built, also after a failure or kill.
    OPEN = "open"
    BUILT = "built"
    # Some views may be published; the same command resumes.
    PROMOTING = "promoting"
    PROMOTED = "promoted"
    # Some files may be deleted; the same command resumes.
    DROPPING = "dropping"


class ViewState(StrEnum):
    """How far a view of an environment has come."""

    OPEN = "open"
    BUILT = "built"
    # It is built and can be read, but the gate blocks it.
    BLOCKED = "blocked"
    # Its table was deleted, because rows of its inputs were deleted.
    DELETED = "deleted"
    PROMOTED = "promoted"


@dataclass(frozen=True, kw_only=True)
class EnvironmentView:
    """A view of an environment.

    Attributes:
        why: ``new``, ``changed``, or the upstream view that changed.
        base: fingerprint of production's definition; None if there was none.
        fingerprint: of the environment's definition.
        vector: input versions that it was built from, in the form of ``VersionVector``.
        table: id and version of its table.
        clock: the value of CURRENT_TIMESTAMP, in ISO format.
        problem: the failed expectations, or why the table was deleted.
        attempt: the attempt that publishes it.
        published: id and version of production's table with its rows.
    """

    why: str
    base: str | None
    fingerprint: str
    state: ViewState = ViewState.OPEN
    vector: JsonObject = field(default_factory=dict)
    table: JsonObject | None = None
    clock: str | None = None
    rows: int | None = None
    seconds: float | None = None
    problem: str | None = None
    attempt: str | None = None
    published: JsonObject | None = None

    @property
    def there(self) -> bool:
        """Whether it can be read."""
        return self.table is not None and self.state in {
            ViewState.BUILT,
            ViewState.BLOCKED,
            ViewState.PROMOTED,
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Self:
        """Decode a stored value: the attributes by name."""
        return cls(**{**value, "state": ViewState(value["state"])})


@dataclass(frozen=True, kw_only=True)
class Environment:
    """A virtual environment.

    Attributes:
        base: the deployment that it was planned against.
        manifest: the running manifest with its views, as JSON.
        views: by name, each after the views that it reads.
        pins: versions of production's tables that an unfinished build reads.
        marked: columns that the project marks as personal data, as ``layer.table.column``.
        deployment: the deployment of its promotion.
    """

    name: str
    status: EnvironmentStatus = EnvironmentStatus.OPEN
    base: str
    who: str
    manifest: str
    views: Mapping[str, EnvironmentView]
    pins: JsonObject = field(default_factory=dict)
    marked: tuple[str, ...] = ()
    deployment: str | None = None
    created_at: datetime = field(default_factory=utc_now)
    updated_at: datetime = field(default_factory=utc_now)

    def with_view(self, view: str, changed: EnvironmentView) -> Environment:
        """A copy with one view replaced."""
        return replace(self, views={**self.views, view: changed})

    def as_dict(self) -> JsonObject:
        """As a JSON object, without the manifest."""
        found = asdict(self)
        del found["manifest"], found["pins"], found["marked"]
        return {
            **found,
            "views": {name: asdict(one) for name, one in self.views.items()},
            "created_at": self.created_at.isoformat(),
            "updated_at": self.updated_at.isoformat(),
        }


def save(connection: Connection, environment: Environment) -> None:
    """Insert or replace an environment; the caller holds its lock."""
    row = {**asdict(environment), "updated_at": utc_now()}
    # A list, because PostgreSQL's JSONB does not keep the order of keys.
    row["views"] = [[name, asdict(one)] for name, one in environment.views.items()]
    row["marked"] = list(environment.marked)
    insert_or_replace(connection, ENVIRONMENTS, row)


def get(connection: Connection, name: str) -> Environment | None:
    """An environment, or None."""
    query = select(ENVIRONMENTS).where(ENVIRONMENTS.c.name == name)
    row = connection.execute(query).mappings().first()
    return None if row is None else _read(row)


def every(connection: Connection) -> list[Environment]:
    """All environments, by name."""
    rows = connection.execute(select(ENVIRONMENTS).order_by(ENVIRONMENTS.c.name)).mappings()
    return [_read(row) for row in rows]


def remove(connection: Connection, name: str) -> None:
    """Delete an environment's record."""
    connection.execute(delete(ENVIRONMENTS).where(ENVIRONMENTS.c.name == name))


def _read(row: RowMapping) -> Environment:
    views = {name: EnvironmentView.from_dict(value) for name, value in row["views"]}
    return Environment(
        **{
            **row,
            "status": EnvironmentStatus(row["status"]),
            "views": views,
            "marked": tuple(row["marked"]),
        }
    )
