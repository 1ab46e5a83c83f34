"""Conditions of refreshing and verifying gold views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Final

from spark_jobs.errors import LakehouseError
from spark_jobs.names import IDENTIFIER, Layer

# Names of tables of other layers start with one of these.
_STREAMED: Final = (f"{Layer.BRONZE}.", f"{Layer.SILVER}.")


class ViewUnknownError(LakehouseError):
    """The project has no gold view of that name."""

    condition = "VIEW_UNKNOWN"
    view: str
    known: Sequence[str]
    misspelt = "meant"
    primary = "there is no gold view {view!r}"
    hint = "{remedy}"

    @property
    def meant(self) -> str:
        """The name, unless it is that of another layer: no view with a similar name is meant."""
        return "" if self.view.startswith(_STREAMED) else self.view

    @property
    def remedy(self) -> str:
        if self.view.startswith(_STREAMED):
            return "It is no gold view; `tidemark status` shows the streams of all tables."
        if IDENTIFIER.fullmatch(self.view):
            return f"Declare it in sql/gold/{self.view}.sql."
        return "Name a gold view; `tidemark graph` lists them."


class NotAnInputError(LakehouseError):
    """No table that a gold view may read has that name."""

    condition = "NOT_AN_INPUT"
    table: str
    known: Sequence[str]
    misspelt = "table"
    primary = "there is no table {table!r} that gold views can read"
    hint = "Name a silver table, a gold view or a Delta source, as in silver.orders."


class QueryFailedError(LakehouseError):
    """Spark could not compute or write a view's result."""

    condition = "QUERY_FAILED"
    view: str
    cause: str
    primary = "the query of gold view {view!r} failed"
    detail = "{cause}"
    hint = "Run tidemark explain --sql {view} to see the SQL with its pinned tables."


class UntypedColumnError(LakehouseError):
    """A column of the result has only NULL and no type, so no table can store it."""

    condition = "UNTYPED_COLUMN"
    view: str
    columns: Sequence[str]
    primary = "gold view {view!r} has columns without a type: {columns}"
    hint = "Give NULL a type in sql/gold/{view}.sql, for instance CAST(NULL AS STRING)."


class InputReplacedError(LakehouseError):
    """An input was dropped or recreated after the plan."""

    condition = "INPUT_REPLACED"
    view: str
    table: str
    primary = "input {table!r} of gold view {view!r} was removed or recreated after the plan"
    hint = "Refresh the view again: tidemark refresh {view}."


class BaseMovedError(LakehouseError):
    """The publication or the definition that a refresh was planned for is not the newest."""

    condition = "BASE_MOVED"
    view: str
    problem: str
    primary = "the refresh of gold view {view!r} was planned for other content: {problem}"
    hint = (
        "The view was published or changed in the meantime. Refresh it again if it is still "
        "behind: tidemark refresh {view}."
    )


class AttemptStateError(LakehouseError):
    """The attempt is not in a state that allows this step."""

    condition = "ATTEMPT_STATE"
    attempt_id: str
    _: KW_ONLY
    status: str
    step: str
    primary = "attempt {attempt_id!r} is {status}, so step {step!r} cannot run"
    hint = "The steps are plan, stage, audit, publish; plan the view again to start over."


class NotPublishedError(LakehouseError):
    """The view was never published, so there is nothing to verify."""

    condition = "NOT_PUBLISHED"
    view: str
    primary = "gold view {view!r} was never published"
    hint = "Run tidemark refresh {view}."


class RecomputeOvertakenError(LakehouseError):
    """Live refreshes published first, in every round of a recomputation."""

    condition = "RECOMPUTE_OVERTAKEN"
    view: str
    primary = "refreshes of gold view {view!r} published before the recomputed rows each time"
    hint = "Pause the DAG gold__{view} or its stream, and resume the replay."


class RecomputeStoppedError(LakehouseError):
    """A recomputation that a refresh overtook must not go on."""

    condition = "RECOMPUTE_STOPPED"
    view: str
    problem: str
    primary = "gold view {view!r} is not recomputed any more: {problem}"
    hint = "`tidemark status {view}` shows how it stands; replay it again if you still want to."


class RollbackRefusedError(LakehouseError):
    """There is no earlier content to publish again."""

    condition = "ROLLBACK_REFUSED"
    view: str
    problem: str
    _: KW_ONLY
    known: Sequence[int]
    primary = "gold view {view!r} cannot be rolled back: {problem}"
    hint = "{remedy}"

    @property
    def remedy(self) -> str:
        if self.known:
            return f"Publications that can be read: {', '.join(map(str, self.known))}."
        return f"Recompute the view: tidemark replay {self.view} --run --reason TEXT."


class ReleaseRefusedError(LakehouseError):
    """There is no audited result that a person could release."""

    condition = "RELEASE_REFUSED"
    view: str
    problem: str
    newer: str | None = None
    primary = "the blocked result of gold view {view!r} cannot be published: {problem}"
    hint = "{remedy}"

    @property
    def remedy(self) -> str:
        if self.newer is not None:
            return (
                f"Attempt {self.newer} waits: look at it, then name it in the form ops__release, "
                f"or run tidemark release {self.view} --attempt {self.newer} --reason TEXT."
            )
        return f"Run tidemark refresh {self.view}; where the gate blocks that result, release it."


class NothingToReleaseError(LakehouseError):
    """The view to release has no blocked result and is not pinned."""

    condition = "NOTHING_TO_RELEASE"
    view: str
    primary = "gold view {view!r} is neither pinned nor blocked"
    hint = "`tidemark status` shows pinned and blocked views."
