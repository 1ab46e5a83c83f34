"""Renders the status page as HTML, and writes it atomically."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spark_jobs.serving.page.facts import PageFacts


def rendered(facts: PageFacts) -> str:
    """The page as HTML; all text from tables, users and errors is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    from spark_jobs.orchestration.page_age import NOTICE, SCRIPT, opening, script_source
    from spark_jobs.serving.page.facts import NOTHING
    from spark_jobs.serving.page.history import HEADS
    from spark_jobs.serving.page.picture import BOX_HEIGHT, BOX_WIDTH, picture
    from spark_jobs.serving.page.trends import BAR_WIDTH, HEIGHT, WIDTH

    environment = Environment(
        loader=PackageLoader("spark_jobs", "serving/page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2").render(
        facts=facts,
        picture=picture(facts),
        box_width=BOX_WIDTH,
        box_height=BOX_HEIGHT,
        nothing=NOTHING,
        history_heads=HEADS,
        chart_width=WIDTH,
        chart_height=HEIGHT,
        bar_width=BAR_WIDTH,
        opening=opening(facts.at),
        notice=NOTICE,
        script=SCRIPT,
        script_source=script_source(),
    )


def write_page(text: str, file: Path) -> None:
    """Write atomically, readable by the owner only.

    What is there and is no regular file, such as a device, a pipe or a link, is written to: another
    file in its place would take it away from every other program.

    Raises:
        OSError: the file cannot be written, for instance because the disk is full.
    """
    # An error's text may contain a lone surrogate, which cannot be encoded.
    content = text.encode("utf-8", errors="replace")
    file.parent.mkdir(parents=True, exist_ok=True)
    if _is_replaceable(file):
        _replace(file, content)
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with os.fdopen(os.open(file, flags, 0o600), "wb") as stream:
        stream.write(content)


def _is_replaceable(file: Path) -> bool:
    try:
        return stat.S_ISREG(file.lstat().st_mode)
    except FileNotFoundError:
        return True


def _replace(file: Path, content: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        Path(temporary).replace(file)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
