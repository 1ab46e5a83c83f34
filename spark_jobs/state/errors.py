"""Error conditions of the control database, leases and locks."""

from __future__ import annotations

from dataclasses import KW_ONLY
from datetime import datetime
from pathlib import Path

from spark_jobs.errors import LakehouseError, first_line


class ControlSchemaNewerError(LakehouseError):
    """A newer release migrated the control database."""

    condition = "CONTROL_SCHEMA_NEWER"
    found: int
    known: int
    primary = "control database has schema version {found}, but this release supports {known}"
    hint = (
        "Run the newer release, or point control_db at another database; control state is rebuilt "
        "from the tables' logs."
    )


class ControlUnreachableError(LakehouseError):
    """The control database cannot be reached or opened."""

    condition = "CONTROL_UNREACHABLE"
    url: str
    problem: str
    primary = "control database {url!r} cannot be opened"
    detail = "{said}"
    hint = "{remedy}"

    @property
    def remedy(self) -> str:
        if self.url.startswith("sqlite:"):
            return "Check the rights of the file and its directory; state_dir names another place."
        return "Check that the database runs and that the setting control_db names it."

    @property
    def said(self) -> str:
        return first_line(self.problem)


class AttemptNotFoundError(LakehouseError):
    """The ledger has no attempt with that id."""

    condition = "ATTEMPT_NOT_FOUND"
    attempt_id: str
    primary = "refresh attempt {attempt_id!r} is not in the ledger"
    hint = "Plan the view first; `tidemark status VIEW` lists its attempts."


class LeaseTakenError(LakehouseError):
    """Another writer holds the table's lease."""

    condition = "LEASE_TAKEN"
    resource: str
    _: KW_ONLY
    holder: str
    expires_at: datetime
    primary = "table {resource!r} is being written by {holder!r}"
    detail = "Its lease expires at {expires_at:%Y-%m-%d %H:%M:%S} UTC unless it is renewed."
    hint = "Wait for that writer to finish; the lease of a dead writer expires."


class LeaseLostError(LakehouseError):
    """The lease expired and another writer may have it; this one must stop."""

    condition = "LEASE_LOST"
    resource: str
    _: KW_ONLY
    owner: str
    fencing: int
    primary = "lease {fencing} of table {resource!r} is no longer held by {owner!r}"
    hint = "Run the refresh again; raise gold.lease_seconds if it needs longer."


class TableLockedError(LakehouseError):
    """Another process on this machine holds the table's lock file."""

    condition = "TABLE_LOCKED"
    table: str
    path: Path
    holder: str
    primary = "table {table!r} is being written by another process on this machine"
    detail = "{path} is locked by {locker}."
    hint = "Wait for it to finish; the lock is released when its process ends."

    @property
    def locker(self) -> str:
        return self.holder or "an unknown process"


class ReplayNotFoundError(LakehouseError):
    """There is no replay or rollback with that id, or it does not contain the view."""

    condition = "REPLAY_NOT_FOUND"
    replay_id: str
    view: str | None = None
    primary = "{what} is not recorded"
    hint = "`tidemark replay status` lists replays and rollbacks."

    @property
    def what(self) -> str:
        if self.view is None:
            return f"replay {self.replay_id!r}"
        return f"view {self.view!r} of {self.replay_id!r}"


class ReplayRejectedError(LakehouseError):
    """A person rejected the replay, and somebody wants to go on with it."""

    condition = "REPLAY_REJECTED"
    replay_id: str
    who: str
    primary = "{replay_id} was rejected by {who}"
    hint = "Ask for a new one: `tidemark replay VIEW`, or the form ops__replay."


class DeploymentOvertakenError(LakehouseError):
    """Another apply started from the same base."""

    condition = "DEPLOYMENT_OVERTAKEN"
    deployment_id: str
    primary = "another deployment on the same base was applied before deployment {deployment_id}"
    detail = "Nothing was changed."
    hint = "Run `tidemark plan` again and check what it would do now."
