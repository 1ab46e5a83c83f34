"""Conditions of asking for a replay, a rollback or an impact."""

from __future__ import annotations

from spark_jobs.errors import LakehouseError, RefusedError


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


class WatermarkNewerError(LakehouseError):
    """A newer release published a view."""

    condition = "WATERMARK_NEWER"

    def __init__(self, view: str, *, found: int, known: int) -> None:
        self.view = view
        self.found = found
        self.known = known
        super().__init__(
            f"gold view {view!r} has a watermark of format {found}, this release knows {known}",
            detail="Its log cannot tell this release what is published, and a refresh would "
            "compute the view anew under numbers that may be taken.",
            hint="Run the newer release; docs/upgrading.md tells how to go back.",
        )


class DeletionTooLargeError(RefusedError):
    """A command would take more away than a mistake should be able to."""

    condition = "DELETION_TOO_LARGE"

    def __init__(self, place: str, rows: int, among: int) -> None:
        self.place = place
        self.rows, self.among = rows, among
        super().__init__(
            f"{rows:,} of {among:,} would be taken out of {place}",
            detail="More than 100 and more than 5 % of them need a person's consent.",
            hint="Look at the dry run; if all of these are meant, run it with --let-pass.",
        )
