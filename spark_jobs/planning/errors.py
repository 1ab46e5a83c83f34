"""Conditions of asking for a replay, a rollback or an impact."""

from __future__ import annotations

from spark_jobs.errors import LakehouseError


class ReplayRequestError(LakehouseError):
    """A field of a request holds what it may not."""

    condition = "REPLAY_REQUEST"

    def __init__(self, field: str, problem: str, *, remedy: str) -> None:
        self.field = field
        self.problem = problem
        super().__init__(f"field {field!r} of the request {problem}", hint=remedy)


class VersionRangeError(LakehouseError):
    """A text that names no range of versions."""

    condition = "VERSION_RANGE"

    def __init__(self, text: str, problem: str) -> None:
        self.text = text
        super().__init__(
            f"{text!r} {problem}",
            hint="Write A..B, for instance --versions 41..44: what changed after 41, up to 44.",
        )
