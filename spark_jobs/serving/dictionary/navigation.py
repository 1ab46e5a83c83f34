"""The site's navigation: the data dictionary, the pages of docs/ by purpose, its directories."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import TypeAdapter, ValidationError

from spark_jobs.serving.dictionary.errors import SiteBrokenError
from spark_jobs.serving.dictionary.tables import FOLDER

# In docs/: a heading, and the pages below it in their order. Other pages are guides.
FILE: Final = "navigation.yml"
# Headings of directories; other directories have their name.
_FOLDERS: Final = {"runbooks": "Runbooks", "adr": "Decisions", "benchmarks": "Benchmarks"}
_HEADINGS: Final = TypeAdapter(dict[str, list[str]])


def navigation(pages: Path) -> list[Any]:
    """MkDocs' setting ``nav``.

    Args:
        pages: the directory of all Markdown files of the site.

    Raises:
        SiteBrokenError: the file of headings is no mapping of headings to lists of pages.
    """
    headings = _headings(pages / FILE)
    placed = {page for below in headings.values() for page in below}
    guides = [
        one.name for one in sorted(pages.glob("*.md")) if one.name not in {*placed, "index.md"}
    ]
    entries: list[Any] = [{"Home": "index.md"}, {"Data dictionary": _dictionary(pages / FOLDER)}]
    entries += [{heading: below} for heading, below in headings.items() if below]
    if guides:
        entries.append({"Guides": guides})
    for folder in sorted(one for one in pages.iterdir() if one.is_dir() and one.name != FOLDER):
        inside = sorted(
            (str(one.relative_to(pages)) for one in folder.rglob("*.md")),
            key=lambda name: (not name.endswith("README.md"), name),
        )
        if inside:
            entries.append({_FOLDERS.get(folder.name, folder.name.capitalize()): inside})
    return entries


def _headings(file: Path) -> dict[str, list[str]]:
    if not file.exists():
        return {}
    try:
        return _HEADINGS.validate_python(yaml.safe_load(file.read_text(encoding="utf-8")) or {})
    except (yaml.YAMLError, ValidationError) as error:
        problem = str(error).partition("\n")[0]
        raise SiteBrokenError([f"docs/{FILE}: {problem}"]) from error


def _dictionary(folder: Path) -> list[Any]:
    names = sorted(one.name for one in folder.glob("*.*.md"))
    groups: list[Any] = [f"{FOLDER}/index.md"]
    for layer in ("gold", "silver", "bronze"):
        own = [name for name in names if name.startswith(f"{layer}.")]
        if own:
            # Without the layer, which is the heading.
            pages = [{name.split(".")[1]: f"{FOLDER}/{name}"} for name in own]
            groups.append({layer.capitalize(): pages})
    return groups
