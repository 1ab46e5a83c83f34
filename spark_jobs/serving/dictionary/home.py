"""The site's home: the project's README, with its links turned to pages of the site."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from spark_jobs.graph.manifest import Manifest
from spark_jobs.serving.dictionary.tables import FOLDER

_LINK: Final = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
_FENCE: Final = re.compile(r"(?ms)^(```.*?^```|~~~.*?^~~~)$")


def home(manifest: Manifest, project_dir: Path) -> str:
    """The README, or a short page where there is none; below its title, the data dictionary.

    Links to pages below docs/ lead to the site's pages. Other files of the project are no pages, so
    links to them become text.

    Args:
        manifest: the compiled project.
        project_dir: directory of README.md and docs/.
    """
    tables = f"{len(manifest.gold)} gold views, {len(manifest.silver)} silver tables"
    dictionary = (
        f"[Data dictionary]({FOLDER}/index.md): {tables} and {len(manifest.sources)} sources."
    )
    readme = project_dir / "README.md"
    if not readme.exists():
        return f"# {manifest.project}\n\n{dictionary}\n"
    text = _relinked(readme.read_text(encoding="utf-8"), project_dir)
    title, _, rest = text.partition("\n")
    if not title.startswith("# "):
        title, rest = f"# {manifest.project}", text
    return f"{title}\n\n{dictionary}\n\n{rest.lstrip()}"


def _relinked(text: str, project_dir: Path) -> str:
    """The text with links as they are below docs/; code blocks stay."""
    parts = _FENCE.split(text)
    return "".join(
        part if at % 2 else _LINK.sub(lambda found: _link(found, project_dir), part)
        for at, part in enumerate(parts)
    )


def _link(found: re.Match[str], project_dir: Path) -> str:
    target = found["target"]
    if "://" in target or target.startswith(("#", "mailto:")):
        return found[0]
    path, _, anchor = target.partition("#")
    if path.startswith("docs/") and (project_dir / path).is_file():
        page = path.removeprefix("docs/") + (f"#{anchor}" if anchor else "")
        return f"{found['image']}[{found['text']}]({page})"
    return found["text"]
