"""Conditions of asking for a replay or a rollback."""

from __future__ import annotations

from spark_jobs.errors import LakehouseError


class ReplayRequestError(LakehouseError):
    """A field of a request holds what it may not."""

    condition = "REPLAY_REQUEST"

    def __init__(self, field: str, problem: str, *, remedy: str) -> None:
        self.field = field
        self.problem = problem
        super().__init__(f"field {field!r} of the request {problem}", hint=remedy)
