"""The tutorial as a program: its files and commands in their order, and what it says they print."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from spark_jobs.cli.main import app
from spark_jobs.errors import LakehouseError, ProblemsError
from spark_jobs.settings import REPOSITORY

TUTORIAL = Path(REPOSITORY, "docs", "tutorial.md")
_BLOCK = re.compile(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def run(
    project: Path, *, without: Collection[str] = (), until: str = ""
) -> Iterator[tuple[str, str]]:
    """Do what the tutorial says in a directory, and hold what it shows against what comes out.

    Args:
        project: where it works.
        without: verbs that are passed over, with what is shown of them.
        until: a heading, before which it ends; without, at the end.

    Yields:
        each command, and what it printed.
    """
    text = TUTORIAL.read_text(encoding="utf-8")
    if until:
        text, heading, _ = text.partition(f"\n## {until}\n")
        assert heading, f"no heading {until!r}"
    printed: str | None = None
    for language, file, body in _BLOCK.findall(text):
        if file:
            path = project / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(body, encoding="utf-8")
        elif language == "bash":
            for line in body.splitlines():
                words = shlex.split(line)[1:]
                printed = None if words[0] in without else output(project, words)
                if printed is not None:
                    yield line, printed
        elif language == "text" and printed is not None:
            missing = [line for line in body.splitlines() if line not in printed]
            assert not missing, f"{missing} not in:\n{printed}"


def output(project: Path, words: list[str]) -> str:
    """What a command prints, with the problem that it ends with."""
    result: Any = CliRunner().invoke(app, ["--project", str(project), *words])
    error = result.exception
    if error is not None and not isinstance(error, LakehouseError | SystemExit):
        raise error
    problems = error.problems if isinstance(error, ProblemsError) else [error]
    told = [one.render() for one in problems if isinstance(one, LakehouseError)]
    return "\n".join([result.output, *told])
