"""Error conditions of planning and applying a change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY

from spark_jobs.errors import LakehouseError, LocatedError


class ChangeLosesDataError(LocatedError):
    """A declaration changed in a way that stored data cannot follow."""

    condition = "CHANGE_LOSES_DATA"
    name: str
    what: str
    was: str
    now: str
    why: str
    _: KW_ONLY
    fresh: str
    primary = "{name}: {what} cannot change from {was} to {now}"
    detail = "{why}"
    hint = (
        "Declare it under a new name, {fresh}, and move its readers there; once nothing reads the "
        "old one, remove its file, apply, and run `tidemark drop`."
    )


class SourceKindChangedError(LocatedError):
    """A source that was a topic, a file or an external table became another of these."""

    condition = "SOURCE_KIND_CHANGED"
    name: str
    was: str
    now: str
    why: str
    _: KW_ONLY
    fresh: str
    then: str
    primary = "{name}: the format cannot change from {was} to {now}"
    detail = "{why}"
    hint = (
        "Declare it under a new name, {fresh}, and move its readers there; once nothing reads the "
        "old one, remove its file and {then}."
    )


class ApplyRunningError(LakehouseError):
    """Another apply is running."""

    condition = "APPLY_RUNNING"
    detail: str | None
    primary = "another `tidemark apply` is running on this lake"
    hint = "Wait until it has ended, then run `tidemark plan` again."


class ApplyOvertakenError(LakehouseError):
    """A later apply took over the open steps of a running one."""

    condition = "APPLY_OVERTAKEN"
    deployment: str
    primary = "another apply continued deployment {deployment} while this one was running"
    detail = "This one stopped. Its finished steps stay done; the other one does the open ones."
    hint = "Wait until the other apply has ended, then run `tidemark plan`."


class PlanOutdatedError(LakehouseError):
    """Another deployment is in force than the plan was made for."""

    condition = "PLAN_OUTDATED"
    base: str
    current: str
    primary = "the plan was made for {base}, but {current} is applied now"
    detail = "Nothing was changed."
    hint = "Run `tidemark plan` again and check what it would do now."


class NotConfirmedError(LakehouseError):
    """The plan needs confirmation, and the command is not interactive."""

    condition = "NOT_CONFIRMED"
    steps: Sequence[str]
    primary = "the plan needs a confirmation: {steps}"
    detail = "Nothing was changed."
    hint = "Run it in a terminal, or pass --yes."


class SourceUnreadableError(LocatedError):
    """The table of a declared source is missing or not readable."""

    condition = "SOURCE_UNREADABLE"
    name: str
    problem: str
    remedy: str
    primary = "source {name!r} {problem}"
    hint = "{remedy}"


class StepFailedError(LakehouseError):
    """A step of an apply failed."""

    condition = "STEP_FAILED"
    step: str
    problem: str
    primary = "step {step!r} failed: {problem}"
    hint = "The steps before it are done. Fix the cause, then run `tidemark apply` to continue."


class NothingAppliedError(LakehouseError):
    """There is no deployment to compare the project with."""

    condition = "NOTHING_APPLIED"
    primary = "nothing has been applied yet, so there is nothing to compare with"
    hint = "Run `tidemark apply`, or compare with a commit: `tidemark diff --against main`."


class NotKeptError(LakehouseError):
    """The table is still declared, or unknown."""

    condition = "NOT_KEPT"
    table: str
    known: Sequence[str]
    misspelt = "table"
    primary = "{table!r} is not a table that was removed from the project"
    hint = (
        "`tidemark plan` lists removed tables. Remove the file and apply before you drop a table."
    )


class StreamRunsError(LakehouseError):
    """A stream still writes a table that is to be deleted."""

    condition = "STREAM_RUNS"
    table: str
    primary = "the streams still write {table}"
    detail = "They would write it again after it was deleted. Nothing was deleted."
    hint = (
        "`tidemark apply` waits until they have stopped it. If they do not stop it, restart the "
        "streaming application."
    )
