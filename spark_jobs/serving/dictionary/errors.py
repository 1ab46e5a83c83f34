"""Error conditions of the site."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from spark_jobs.errors import LakehouseError


class SiteToolMissingError(LakehouseError):
    """MkDocs is not installed."""

    condition = "SITE_TOOL_MISSING"
    module: str
    primary = "the site needs MkDocs, but Python has no module {module!r}"
    hint = "Run make setup: it installs the development tools too."


class SiteBrokenError(LakehouseError):
    """Pages have broken links."""

    condition = "SITE_BROKEN"
    problems: Sequence[str]
    primary = "the site has broken pages or links"
    detail = "{sentences}"
    hint = "Fix the pages in docs/ that the lines name; nothing was written."

    @property
    def sentences(self) -> str:
        return " ".join(f"{' '.join(one.split())}." for one in self.problems)


class SiteDirectoryTakenError(LakehouseError):
    """The directory contains something else than an earlier site."""

    condition = "SITE_DIRECTORY_TAKEN"
    directory: Path
    primary = "{directory} contains files that are not a site and would be lost"
    hint = "Choose a directory that is empty or does not exist."


class PageTakenError(LakehouseError):
    """docs/ has a page where a generated one belongs."""

    condition = "PAGE_TAKEN"
    page: Path
    primary = "{page} is at the place of a page of the data dictionary"
    hint = "Rename it."
