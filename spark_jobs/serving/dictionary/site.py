"""Builds the static site with MkDocs: the pages of docs/ and the data dictionary.

It loads nothing from elsewhere: no fonts, scripts or trackers.
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from spark_jobs.graph.manifest import GoldEntry, Manifest
from spark_jobs.serving.dictionary.errors import (
    PageTakenError,
    SiteBrokenError,
    SiteDirectoryTakenError,
    SiteToolMissingError,
)
from spark_jobs.serving.dictionary.home import home
from spark_jobs.serving.dictionary.navigation import navigation
from spark_jobs.serving.dictionary.overview import overview
from spark_jobs.serving.dictionary.pages import table_page
from spark_jobs.serving.dictionary.samples import sample
from spark_jobs.serving.dictionary.tables import FOLDER, Dictionary

if TYPE_CHECKING:
    from spark_jobs.storage.lake import Lake

# Marks a directory as a site that may be replaced.
MARKER: Final = ".tidemark-site"
_STYLE = Path(__file__).with_name("site.css")
# They contain the build date, and are useless without a URL.
_UNWANTED = ("sitemap.xml", "sitemap.xml.gz")


def build_site(
    manifest: Manifest, target: Path, *, project_dir: Path, lake: Lake | None = None
) -> int:
    """Write the site atomically; an existing one is replaced.

    Args:
        manifest: the compiled project.
        target: the output directory.
        project_dir: directory of docs/ and the declarations.
        lake: where to read sample rows; None: no samples.

    Returns:
        number of pages of the data dictionary.

    Raises:
        SiteToolMissingError: MkDocs is not installed.
        SiteBrokenError: a link is broken.
        SiteDirectoryTakenError: the directory contains something else.
        PageTakenError: docs/ has a page where the data dictionary belongs.
    """
    if target.exists() and any(target.iterdir()) and not (target / MARKER).exists():
        raise SiteDirectoryTakenError(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".site.") as scratch:
        pages, built = Path(scratch, "docs"), Path(scratch, "site")
        count = write_pages(manifest, pages, project_dir=project_dir, lake=lake)
        settings = Path(scratch, "mkdocs.yml")
        settings.write_text(yaml.safe_dump(_settings(manifest.project, pages, built)))
        _run(settings)
        for name in _UNWANTED:
            (built / name).unlink(missing_ok=True)
        (built / MARKER).touch()
        if target.exists():
            shutil.rmtree(target)
        built.rename(target)
    return count


def write_pages(
    manifest: Manifest, pages: Path, *, project_dir: Path, lake: Lake | None = None
) -> int:
    """Write the site's Markdown below ``pages``; returns the number of dictionary pages.

    Args:
        manifest: of the project.
        pages: the directory to write to.
        project_dir: its ``docs/`` are copied there.
        lake: to show rows of gold views from; None: no rows are shown.

    Raises:
        PageTakenError: ``docs/`` already has the dictionary's folder.
        LogUnreadableError: a table's log cannot be read.
    """
    docs = project_dir / "docs"
    if (docs / FOLDER).exists():
        raise PageTakenError(docs / FOLDER)
    if docs.exists():
        shutil.copytree(docs, pages)
    folder = pages / FOLDER
    folder.mkdir(parents=True)
    found = Dictionary(manifest)
    for name, entry in found.entries.items():
        shown = sample(lake, entry) if lake is not None and isinstance(entry, GoldEntry) else None
        text = table_page(found, entry, text=_text(project_dir / entry.file), sample=shown)
        _write(folder / f"{name}.md", text, title=name)
    _write(folder / "index.md", overview(found), title="Data dictionary")
    if not (pages / "index.md").exists():
        _write(pages / "index.md", home(manifest, project_dir), title=manifest.project)
    shutil.copy(_STYLE, pages / _STYLE.name)
    return len(found.entries) + 1


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.exists() else ""


def _write(file: Path, text: str, *, title: str) -> None:
    file.write_text(f"---\ntitle: {title}\n---\n\n{text}", encoding="utf-8")


def _settings(name: str, pages: Path, built: Path) -> dict[str, Any]:
    return {
        "site_name": name,
        "docs_dir": str(pages),
        "site_dir": str(built),
        "strict": True,
        # So that the pages work from disk, without a server.
        "use_directory_urls": False,
        "theme": {
            "name": "material",
            "font": False,
            "features": ["navigation.indexes", "navigation.top", "toc.follow"],
            "palette": _PALETTE,
        },
        "extra": {"generator": False},
        "extra_css": [_STYLE.name],
        "plugins": ["search"],
        "markdown_extensions": [
            "tables",
            {"toc": {"permalink": True}},
            {"pymdownx.highlight": {"use_pygments": True}},
            "pymdownx.superfences",
        ],
        "validation": {
            "nav": {"omitted_files": "warn", "not_found": "warn", "absolute_links": "warn"},
            "links": {
                "not_found": "warn",
                "anchors": "warn",
                "absolute_links": "warn",
                "unrecognized_links": "warn",
            },
        },
        "nav": navigation(pages),
    }


_PALETTE = [
    {
        "media": f"(prefers-color-scheme: {scheme})",
        "scheme": name,
        "primary": "teal",
        "accent": "teal",
    }
    for scheme, name in (("light", "default"), ("dark", "slate"))
]


def _run(settings: Path) -> None:
    # Otherwise the theme prints an advertisement.
    os.environ.setdefault("NO_MKDOCS_2_WARNING", "1")
    try:
        from mkdocs.commands.build import build
        from mkdocs.config import load_config
        from mkdocs.exceptions import MkDocsException
    except ModuleNotFoundError as error:
        raise SiteToolMissingError(error.name or "mkdocs") from error
    with _problems() as problems:
        try:
            build(load_config(str(settings)))
        except MkDocsException as error:
            raise SiteBrokenError(problems or [str(error)]) from error


@contextmanager
def _problems() -> Iterator[list[str]]:
    """Collects MkDocs' warnings, and silences its other output."""
    problems: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            problems.append(record.getMessage())

    logger, handler = logging.getLogger("mkdocs"), Kept(logging.WARNING)
    spoken = logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield problems
    finally:
        logger.removeHandler(handler)
        logger.propagate = spoken
