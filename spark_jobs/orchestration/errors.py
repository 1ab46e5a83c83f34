"""Conditions of orchestration: schedules, the manifest, notifiers."""

from __future__ import annotations

from pathlib import Path

from spark_jobs.errors import LakehouseError, Location
from spark_jobs.settings import SETTINGS_FILE


class PeriodUnsupportedError(LakehouseError):
    """A gold view's period cannot be cut out of the calendar in equal, aligned pieces."""

    condition = "PERIOD_UNSUPPORTED"

    def __init__(self, view: str, seconds: int, *, file: str | None = None) -> None:
        self.view = view
        self.seconds = seconds
        super().__init__(
            f"gold view {view!r} has a period of {seconds} seconds, which no schedule expresses",
            detail="Every refresh belongs to one interval, and the intervals of all views must "
            "meet at the same boundaries.",
            hint="Use whole minutes that divide an hour (1, 2, 5, 10, 15, 20, 30 minutes), whole "
            "hours that divide a day (1, 2, 3, 4, 6, 8, 12 hours), 1 day or 7 days.",
            location=None if file is None else Location(file),
        )


class ManifestMissingError(LakehouseError):
    """The project was not compiled, so there is nothing to build DAGs from."""

    condition = "MANIFEST_MISSING"

    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(
            f"no compiled manifest at {str(path)!r}",
            hint="Run `tidemark validate` in the project, and check that TIDEMARK_PROJECT names "
            "the project's directory.",
        )


class ManifestUnreadableError(LakehouseError):
    """The manifest is there, but another version of the program wrote it."""

    condition = "MANIFEST_UNREADABLE"

    def __init__(self, path: Path, problem: str) -> None:
        self.path = path
        super().__init__(
            f"manifest {str(path)!r} does not have the expected form",
            detail=problem,
            hint="Run `tidemark validate` to compile the project again.",
        )


class NotifierUnusableError(LakehouseError):
    """A notifier of the settings cannot be made, so that nobody would hear of a failure."""

    condition = "NOTIFIER_UNUSABLE"

    def __init__(self, notifier: str, problem: str) -> None:
        self.notifier = notifier
        super().__init__(
            f"notifier {notifier!r} cannot be made",
            detail=problem,
            hint="Mend `alerts.notifiers` in the settings: `notifier` is the dotted path of the "
            "class, whose package must be installed, and `arguments` are those that it takes.",
            location=Location(SETTINGS_FILE),
        )
