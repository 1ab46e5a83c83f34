"""Virtual environments: what each holds, from what it was built and how far it came."""

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
    """How far an environment came."""

    # Views are left to build; also where a build failed or was killed.
    OPEN = "open"
    BUILT = "built"
    # Some of it may be published; the same command goes on.
    PROMOTING = "promoting"
    PROMOTED = "promoted"
    # Some of its files may be gone; the same command goes on.
    DROPPING = "dropping"


class ViewState(StrEnum):
    """How far a view of an environment came."""

    OPEN = "open"
    BUILT = "built"
    # It is there to be looked at, and the quality gate stops it.
    BLOCKED = "blocked"
    # Its copy was deleted, because data left the tables that it reads.
    DELETED = "deleted"
    PROMOTED = "promoted"


@dataclass(frozen=True, kw_only=True)
class EnvironmentView:
    """A view of an environment.

    Attributes:
        why: ``new``, ``changed``, or the view above it that changed.
        base: the fingerprint of production's definition; None where it had none.
        fingerprint: of the definition that the environment has.
        vector: the versions of the inputs that it was built from, as ``VersionVector`` has them.
        table: the id and the version of the table that was built.
        clock: what the clock showed, in ISO's form.
        problem: which expectations failed, or why the copy was deleted.
        attempt: the attempt that publishes it.
        published: the id and the version of production's table that has its rows.
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
        """Read what the control database keeps."""
        return cls(**{**value, "state": ViewState(value["state"])})


@dataclass(frozen=True, kw_only=True)
class Environment:
    """One environment.

    Attributes:
        base: the deployment that it was planned against.
        manifest: what would run with its views, as JSON.
        views: by name, each after those that it reads.
        pins: the versions of production's tables that a build which did not end reads.
        marked: columns that the project marks as personal data, as ``layer.table.column``.
        deployment: the promotion's.
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
        """The same with one view changed."""
        return replace(self, views={**self.views, view: changed})

    def as_dict(self) -> JsonObject:
        """The form for programs, without the manifest."""
        found = asdict(self)
        del found["manifest"], found["pins"], found["marked"]
        return {
            **found,
            "views": {name: asdict(one) for name, one in self.views.items()},
            "created_at": self.created_at.isoformat(),
            "updated_at": self.updated_at.isoformat(),
        }


def save(connection: Connection, environment: Environment) -> None:
    """Insert or replace an environment; only who holds its lock calls this."""
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
    """Forget an environment."""
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
