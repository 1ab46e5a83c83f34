"""Conditions of orchestration: schedules, the manifest, notifiers."""

from __future__ import annotations

from dataclasses import KW_ONLY
from pathlib import Path

from spark_jobs.errors import LakehouseError, Location
from spark_jobs.settings import SETTINGS_FILE


class PeriodUnsupportedError(LakehouseError):
    """A gold view's period does not divide the calendar into equal, aligned intervals."""

    condition = "PERIOD_UNSUPPORTED"
    view: str
    seconds: int
    _: KW_ONLY
    file: str | None = None
    primary = "gold view {view!r} has a period of {seconds} seconds, which no schedule can express"
    detail = (
        "Every refresh belongs to one interval, and the intervals of all views must have common "
        "boundaries."
    )
    hint = (
        "Use whole minutes that divide an hour (1, 2, 5, 10, 15, 20, 30 minutes), whole hours that "
        "divide a day (1, 2, 3, 4, 6, 8, 12 hours), 1 day or 7 days."
    )

    def __post_init__(self) -> None:
        self.location = None if self.file is None else Location(self.file)
        super().__post_init__()


class ManifestMissingError(LakehouseError):
    """The project was not compiled, so DAGs cannot be built."""

    condition = "MANIFEST_MISSING"
    path: Path
    primary = "no compiled manifest at {path!r}"
    hint = (
        "Run `tidemark validate` in the project, and check that TIDEMARK_PROJECT names the "
        "project's directory."
    )


class ManifestUnreadableError(LakehouseError):
    """The manifest was written by another version of the program."""

    condition = "MANIFEST_UNREADABLE"
    path: Path
    problem: str
    primary = "manifest {path!r} does not have the expected form"
    detail = "{problem}"
    hint = "Run `tidemark validate` to compile the project again."


class NotifierUnusableError(LakehouseError):
    """A notifier of the settings cannot be created, so alerts would be lost."""

    condition = "NOTIFIER_UNUSABLE"
    notifier: str
    problem: str
    location = Location(SETTINGS_FILE)
    primary = "notifier {notifier!r} cannot be created"
    detail = "{problem}"
    hint = (
        "Fix `alerts.notifiers` in the settings: `notifier` is the dotted path of an installed "
        "class, and `arguments` are its parameters."
    )


class SamePersonError(LakehouseError):
    """A person approved their own request, although the settings require a second person."""

    condition = "SAME_PERSON"
    who: str
    primary = "{who} requested this run and cannot approve it"
    hint = (
        "The question is asked again: somebody else must answer it under Required Actions. The "
        "setting replay.approval requires a second person."
    )
