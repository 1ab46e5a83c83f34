"""Conditions of the control database and of the guards that keep one writer per table."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from spark_jobs.errors import LakehouseError


class ControlSchemaNewerError(LakehouseError):
    """The control database was migrated by a newer release than this one."""

    condition = "CONTROL_SCHEMA_NEWER"

    def __init__(self, found: int, known: int) -> None:
        self.found = found
        self.known = known
        super().__init__(
            f"control database has schema version {found}, this release knows {known}",
            hint="Run the newer release, or point control_db at another database; control state "
            "is rebuilt from the tables' logs.",
        )


class ControlUnreachableError(LakehouseError):
    """The control database does not answer or cannot be opened."""

    condition = "CONTROL_UNREACHABLE"

    def __init__(self, url: str, problem: str) -> None:
        self.url = url
        self.problem = problem
        super().__init__(
            f"control database {url!r} cannot be opened",
            detail=problem.strip().splitlines()[0] + "." if problem.strip() else None,
            hint="Check that the database runs and that the setting control_db names it.",
        )


class AttemptNotFoundError(LakehouseError):
    """The ledger holds no attempt of that id."""

    condition = "ATTEMPT_NOT_FOUND"

    def __init__(self, attempt_id: str) -> None:
        self.attempt_id = attempt_id
        super().__init__(
            f"refresh attempt {attempt_id!r} is not in the ledger",
            hint="Plan the view first; `tidemark status VIEW` lists its attempts.",
        )


class LeaseTakenError(LakehouseError):
    """Another writer holds the table's lease."""

    condition = "LEASE_TAKEN"

    def __init__(self, resource: str, *, holder: str, expires_at: datetime) -> None:
        self.resource = resource
        self.holder = holder
        self.expires_at = expires_at
        super().__init__(
            f"table {resource!r} is being written by {holder!r}",
            detail=f"Its lease ends at {expires_at:%Y-%m-%d %H:%M:%S} UTC unless it is renewed.",
            hint="Wait for that writer to end; the lease of a dead writer ends by itself.",
        )


class LeaseLostError(LakehouseError):
    """The lease ran out and somebody else may write by now; this writer must stop."""

    condition = "LEASE_LOST"

    def __init__(self, resource: str, *, owner: str, fencing: int) -> None:
        self.resource = resource
        self.owner = owner
        self.fencing = fencing
        super().__init__(
            f"lease {fencing} of table {resource!r} is no longer held by {owner!r}",
            hint="Run the refresh again; raise gold.lease_seconds if it needs longer.",
        )


class TableLockedError(LakehouseError):
    """Another process on this machine holds the table's lock file."""

    condition = "TABLE_LOCKED"

    def __init__(self, table: str, path: Path, holder: str) -> None:
        self.table = table
        self.path = path
        self.holder = holder
        super().__init__(
            f"table {table!r} is being written by another process on this machine",
            detail=f"{path} is locked by {holder or 'an unknown process'}.",
            hint="Wait for it to end; the lock goes with its process.",
        )


class ReplayNotFoundError(LakehouseError):
    """No replay or rollback of that id, or it has no such view."""

    condition = "REPLAY_NOT_FOUND"

    def __init__(self, replay_id: str, view: str | None = None) -> None:
        self.replay_id = replay_id
        self.view = view
        what = f"replay {replay_id!r}" if view is None else f"view {view!r} of {replay_id!r}"
        super().__init__(
            f"{what} is not recorded",
            hint="`tidemark replay status` lists replays and rollbacks.",
        )
