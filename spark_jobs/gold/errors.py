"""Conditions of refreshing and verifying gold views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY

from spark_jobs.errors import LakehouseError


class ViewUnknownError(LakehouseError):
    """A name that no gold view of the project has."""

    condition = "VIEW_UNKNOWN"
    view: str
    known: Sequence[str]
    misspelt = "view"
    primary = "there is no gold view {view!r}"
    hint = "Declare it in sql/gold/{view}.sql."


class NotAnInputError(LakehouseError):
    """A name that no table has which a gold view may read."""

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
    """A column of the result is nothing but NULL, which no table can hold."""

    condition = "UNTYPED_COLUMN"
    view: str
    columns: Sequence[str]
    primary = "gold view {view!r} has columns without a type: {columns}"
    hint = "Give NULL a type in sql/gold/{view}.sql, for instance CAST(NULL AS STRING)."


class InputReplacedError(LakehouseError):
    """An input is not the table any more that the plan pinned."""

    condition = "INPUT_REPLACED"
    view: str
    table: str
    primary = "input {table!r} of gold view {view!r} was removed or recreated after the plan"
    hint = "Plan the view again in a new tick."


class BaseMovedError(LakehouseError):
    """An incremental refresh whose starting point is not the newest publication any more."""

    condition = "BASE_MOVED"
    view: str
    problem: str
    primary = (
        "the incremental refresh of gold view {view!r} was planned for other content: {problem}"
    )
    hint = "Another refresh published the view in the meantime; plan it again in a new tick."


class AttemptStateError(LakehouseError):
    """A step was asked for that the attempt is not ready for."""

    condition = "ATTEMPT_STATE"
    attempt_id: str
    _: KW_ONLY
    status: str
    step: str
    primary = "attempt {attempt_id!r} is {status}, so step {step!r} cannot run"
    hint = "The steps are plan, stage, audit, publish; plan the view again to start over."


class NotPublishedError(LakehouseError):
    """A view has nothing to verify yet."""

    condition = "NOT_PUBLISHED"
    view: str
    primary = "gold view {view!r} was never published"
    hint = "Run tidemark refresh {view}."


class RecomputeOvertakenError(LakehouseError):
    """Rows were computed again, and each time a refresh published before they could be."""

    condition = "RECOMPUTE_OVERTAKEN"
    view: str
    primary = "refreshes of gold view {view!r} published before the recomputed rows each time"
    hint = "Pause the DAG gold__{view} or its stream, and resume the replay."


class RollbackRefusedError(LakehouseError):
    """There is no earlier content to go back to."""

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
    """There is no judged result that a person could let through."""

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
    """A view that is to be released has no blocked result and is not pinned."""

    condition = "NOTHING_TO_RELEASE"
    view: str
    primary = "gold view {view!r} is neither pinned nor blocked"
    hint = "`tidemark status` shows pinned and blocked views."
