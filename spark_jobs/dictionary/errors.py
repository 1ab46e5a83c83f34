"""Conditions of the site."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from spark_jobs.errors import LakehouseError


class SiteToolMissingError(LakehouseError):
    """The generator of the site is not installed."""

    condition = "SITE_TOOL_MISSING"

    def __init__(self, module: str) -> None:
        super().__init__(
            f"the site needs MkDocs, and Python finds no module {module!r}",
            hint="Run make setup: it installs the development tools too.",
        )


class SiteBrokenError(LakehouseError):
    """Pages that would lead nowhere."""

    condition = "SITE_BROKEN"

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__(
            "the site has pages or links that lead nowhere",
            detail=" ".join(f"{' '.join(one.split())}." for one in self.problems) or None,
            hint="Mend the page that each line names, in docs/; nothing was written.",
        )


class SiteDirectoryTakenError(LakehouseError):
    """A directory that holds something else than an earlier site."""

    condition = "SITE_DIRECTORY_TAKEN"

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        super().__init__(
            f"{directory} holds something else than a site, which would be lost",
            hint="Name a directory that is empty, or that does not exist.",
        )


class PageTakenError(LakehouseError):
    """A page of docs/ where a generated one belongs."""

    condition = "PAGE_TAKEN"

    def __init__(self, page: Path) -> None:
        self.page = page
        super().__init__(
            f"{page} lies where the data dictionary belongs",
            hint="Give it another name.",
        )
