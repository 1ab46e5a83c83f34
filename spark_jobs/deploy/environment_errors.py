"""Error conditions of virtual environments."""

from __future__ import annotations

from collections.abc import Sequence

from spark_jobs.errors import LakehouseError


class EnvironmentNameError(LakehouseError):
    """The text is not a valid name of an environment."""

    condition = "ENVIRONMENT_NAME"
    name: str
    primary = "{name!r} is not a valid name of an environment"
    hint = (
        "Write up to 31 lower-case letters, digits and underscores, with a letter first, as in "
        "--env ana."
    )


class EnvironmentUnknownError(LakehouseError):
    """There is no environment of that name."""

    condition = "ENVIRONMENT_UNKNOWN"
    name: str
    known: Sequence[str]
    misspelt = "name"
    primary = "there is no environment {name!r}"
    hint = (
        "`tidemark env list` lists the environments; `tidemark apply --env {name}` builds this one."
    )


class EnvironmentBusyError(LakehouseError):
    """Another command is working on the environment."""

    condition = "ENVIRONMENT_BUSY"
    name: str
    detail: str | None
    primary = "another command is using environment {name!r}"
    hint = "Wait until it has ended, then run this one again."


class EnvironmentInputError(LakehouseError):
    """An environment's view reads a table that does not run as the project declares it."""

    condition = "ENVIRONMENT_INPUT"
    view: str
    table: str
    problem: str
    primary = "gold view {view!r} reads {table}, which {problem}"
    detail = "An environment contains gold views only and reads everything else from production."
    hint = "Apply the sources and the silver tables first, with `tidemark apply`."


class EnvironmentNotBuiltError(LakehouseError):
    """A query names a view of the environment that is not built."""

    condition = "ENVIRONMENT_NOT_BUILT"
    name: str
    view: str
    problem: str
    primary = "gold view {view!r} is not available in environment {name!r}: {problem}"
    hint = "Run `tidemark apply --env {name}`."


class EnvironmentBaseMovedError(LakehouseError):
    """Production's definition of a view changed after the environment was planned."""

    condition = "ENVIRONMENT_BASE_MOVED"
    name: str
    views: Sequence[str]
    base: str
    primary = "production's definition of {views} changed after environment {name!r} was planned"
    detail = "It was planned against {base}. Nothing was changed."
    hint = (
        "Merge that change into the project, check `tidemark plan --env {name}`, and run `tidemark "
        "apply --env {name}`."
    )


class PromotionRefusedError(LakehouseError):
    """The environment cannot be promoted in its current state."""

    condition = "PROMOTION_REFUSED"
    name: str
    problem: str
    remedy: str
    primary = "environment {name!r} is not promoted: {problem}"
    detail = "Nothing was changed."
    hint = "{remedy}"


class EnvironmentBlockedError(LakehouseError):
    """The gate blocks views of an environment."""

    condition = "ENVIRONMENT_BLOCKED"
    name: str
    views: Sequence[str]
    problem: str
    primary = "the quality gate blocks {views} of environment {name!r}"
    detail = "{problem} Production was not changed."
    hint = (
        'Look at the rows: `tidemark query --env {name} "SELECT …"`. Fix the SQL or the rules in '
        "expectations/, then run `tidemark apply --env {name}`."
    )
