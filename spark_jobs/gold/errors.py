"""Conditions of refreshing and verifying gold views."""

from __future__ import annotations

from collections.abc import Sequence

from spark_jobs.errors import LakehouseError, did_you_mean


class ViewUnknownError(LakehouseError):
    """A name that no gold view of the project has."""

    condition = "VIEW_UNKNOWN"

    def __init__(self, view: str, known: Sequence[str]) -> None:
        self.view = view
        super().__init__(
            f"there is no gold view {view!r}",
            hint=did_you_mean(view, known) or f"Declare it in sql/gold/{view}.sql.",
        )


class NotAnInputError(LakehouseError):
    """A name that no table has which a gold view may read."""

    condition = "NOT_AN_INPUT"

    def __init__(self, table: str, known: Sequence[str]) -> None:
        self.table = table
        super().__init__(
            f"there is no table {table!r} that gold views may read",
            hint=did_you_mean(table, known)
            or "Name a silver table, a gold view or a Delta source, as in silver.orders.",
        )


class QueryFailedError(LakehouseError):
    """Spark could not compute or write a view's result."""

    condition = "QUERY_FAILED"

    def __init__(self, view: str, cause: str) -> None:
        self.view = view
        self.cause = cause
        super().__init__(
            f"the query of gold view {view!r} failed",
            detail=cause,
            hint=f"Run tidemark explain --sql {view} to see the SQL with its pinned tables.",
        )


class UntypedColumnError(LakehouseError):
    """A column of the result is nothing but NULL, which no table can hold."""

    condition = "UNTYPED_COLUMN"

    def __init__(self, view: str, columns: Sequence[str]) -> None:
        self.view = view
        self.columns = tuple(columns)
        super().__init__(
            f"gold view {view!r} has columns without a type: {', '.join(columns)}",
            hint=f"Give NULL a type in sql/gold/{view}.sql, for instance CAST(NULL AS STRING).",
        )


class InputReplacedError(LakehouseError):
    """An input is not the table any more that the plan pinned."""

    condition = "INPUT_REPLACED"

    def __init__(self, view: str, table: str) -> None:
        self.view = view
        self.table = table
        super().__init__(
            f"input {table!r} of gold view {view!r} was removed or created anew after the plan",
            hint="Plan the view again in a new tick.",
        )


class BaseMovedError(LakehouseError):
    """An incremental refresh whose starting point is not the newest publication any more."""

    condition = "BASE_MOVED"

    def __init__(self, view: str, problem: str) -> None:
        self.view = view
        super().__init__(
            f"the incremental refresh of gold view {view!r} was planned for other content: "
            f"{problem}",
            hint="Somebody else refreshed the view in between; plan it again in a new tick.",
        )


class AttemptStateError(LakehouseError):
    """A step was asked for that the attempt is not ready for."""

    condition = "ATTEMPT_STATE"

    def __init__(self, attempt_id: str, *, status: str, step: str) -> None:
        self.attempt_id = attempt_id
        self.status = status
        self.step = step
        super().__init__(
            f"attempt {attempt_id!r} is {status}, so that step {step!r} does not apply",
            hint="The steps are plan, stage, audit, publish; plan the view again to start over.",
        )


class NotPublishedError(LakehouseError):
    """A view has nothing to verify yet."""

    condition = "NOT_PUBLISHED"

    def __init__(self, view: str) -> None:
        self.view = view
        super().__init__(
            f"gold view {view!r} was never published", hint=f"Run tidemark refresh {view}."
        )


class RecomputeOvertakenError(LakehouseError):
    """Rows were computed again, and each time a refresh published before they could be."""

    condition = "RECOMPUTE_OVERTAKEN"

    def __init__(self, view: str) -> None:
        self.view = view
        super().__init__(
            f"refreshes of gold view {view!r} were faster each time that it was computed again",
            hint=f"Pause the DAG gold__{view} or its stream, and resume the replay.",
        )


class RollbackRefusedError(LakehouseError):
    """There is no earlier content to go back to."""

    condition = "ROLLBACK_REFUSED"

    def __init__(self, view: str, problem: str, *, known: Sequence[int]) -> None:
        self.view = view
        self.known = tuple(known)
        versions = ", ".join(map(str, known))
        super().__init__(
            f"gold view {view!r} cannot go back: {problem}",
            hint=f"Publications that can be read: {versions}."
            if known
            else f"Recompute the view: tidemark replay {view} --run --reason TEXT.",
        )


class ReleaseRefusedError(LakehouseError):
    """There is no judged result that a person could let through."""

    condition = "RELEASE_REFUSED"

    def __init__(self, view: str, problem: str) -> None:
        self.view = view
        self.problem = problem
        super().__init__(
            f"the result of gold view {view!r} that waits cannot be published: {problem}",
            hint=f"Run tidemark refresh {view}; where the gate holds that result, release it.",
        )


class NotHeldError(LakehouseError):
    """A view that is to be released is not held."""

    condition = "NOT_HELD"

    def __init__(self, view: str) -> None:
        self.view = view
        super().__init__(
            f"gold view {view!r} is not held", hint="`tidemark status` names the held views."
        )
