"""Error conditions of requests: replay, rollback, impact, selections."""

from __future__ import annotations

from dataclasses import KW_ONLY, field

from spark_jobs.errors import LakehouseError, RefusedError


class ReplayRequestError(LakehouseError):
    """A field of a request has a value that is not allowed."""

    condition = "REPLAY_REQUEST"
    field: str
    problem: str
    _: KW_ONLY
    remedy: str
    primary = "field {field!r} of the request {problem}"
    hint = "{remedy}"


class VersionRangeError(LakehouseError):
    """A text is not a version range."""

    condition = "VERSION_RANGE"
    text: str
    problem: str
    primary = "{text!r} {problem}"
    hint = "Write A..B, for instance --versions 41..44: the changes after 41, up to 44."


class WatermarkNewerError(LakehouseError):
    """A newer release published the view."""

    condition = "WATERMARK_NEWER"
    view: str
    _: KW_ONLY
    found: int
    known: int
    primary = "gold view {view!r} has a watermark of format {found}, this release knows {known}"
    detail = (
        "This release cannot read from the log what is published, and a refresh could reuse "
        "numbers of publications."
    )
    hint = "Run the newer release; docs/upgrading.md explains how to go back."


class DeletionTooLargeError(RefusedError):
    """A command would delete more than is allowed without confirmation."""

    condition = "DELETION_TOO_LARGE"
    place: str
    rows: int
    among: int
    primary = "{rows:,} of {among:,} would be deleted from {place}"
    detail = "More than 100 and more than 5 % of them need your confirmation."
    hint = "Check the dry run; if all of them should be deleted, run it with --let-pass."


class SelectionSyntaxError(LakehouseError):
    """A text is not a selection of views."""

    condition = "SELECTION_SYNTAX"
    text: str
    problem: str
    primary = "{text!r} is not a selection of views: {problem}"
    hint = (
        "Write a name, tag:NAME, owner:NAME, path:FOLDER or state:changed. + before it adds its "
        "inputs, + after it its downstream views; a comma combines conditions that must all match."
    )


class NothingSelectedError(LakehouseError):
    """A selection matches no gold view, or no other table that a command can process."""

    condition = "NOTHING_SELECTED"
    text: str
    remedy: str
    wanted: str = field(default="gold view", kw_only=True)
    primary = "{text!r} selects no {wanted}"
    hint = "{remedy}"
