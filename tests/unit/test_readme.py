"""What the papers show is true: commands exist, examples compile, links lead somewhere."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup

from spark_jobs.cli.main import app
from spark_jobs.graph.compile import compile_project
from spark_jobs.settings import REPOSITORY

DOCS = sorted(str(path.relative_to(REPOSITORY)) for path in Path(REPOSITORY, "docs").rglob("*.md"))
PAPERS = ["README.md", "CONTRIBUTING.md", *DOCS]
FENCE = re.compile(r"^ *```(\w*)(?: file=(\S+))?\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"(?<!`)`((?:tidemark|make) [^`\n]+)`(?!`)")
LINK = re.compile(r"\]\((?!https?://)([^)#]+)")
# What the papers may name beside our own programs.
OTHERS = {
    "docker",
    "airflow",
    "ss",
    "source",
    "export",
    "cat",
    "ls",
    "curl",
    "kill",
    "kubectl",
    "rm",
    "beeline",
    "find",
}


def text_of(paper: str) -> str:
    return Path(REPOSITORY, paper).read_text(encoding="utf-8")


def commands(paper: str) -> Iterator[str]:
    """Every line of its shell blocks, and every command in running text."""
    text = text_of(paper)
    for language, _, body in FENCE.findall(text):
        if language == "bash":
            whole = body.replace("\\\n", " ")
            yield from filter(None, map(str.strip, whole.splitlines()))
    yield from INLINE.findall(text)


@pytest.mark.parametrize("paper", PAPERS)
def test_commands(paper: str):
    wrong = {line: problem for line in commands(paper) if (problem := problem_of(line))}
    assert wrong == {}


def test_a_wrong_command_is_found():
    for line in ("tidemark bogus", "tidemark load --speed 3", "make nothing", "nonsense --all"):
        assert problem_of(line), line


def problem_of(line: str) -> str | None:
    """Why a command would not be understood."""
    try:
        check_command(line)
    except Exception as error:  # noqa: BLE001 - the reader is told of any
        return f"{type(error).__name__}: {error}"
    return None


def check_command(line: str) -> None:
    words = shlex.split(line, comments=True)
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        words.pop(0)
    if not words:
        return
    program = Path(words[0]).name
    match program:
        case "make":
            targets = [word for word in words[1:] if "=" not in word]
            assert set(targets) <= make_targets()
        case "tidemark":
            parse(words[1:])
        case "python":
            assert find_spec(words[words.index("-m") + 1])
        case "pre-commit":
            assert Path(REPOSITORY, ".pre-commit-config.yaml").exists()
        case _:
            assert program in OTHERS


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z0-9-]+):", text_of("Makefile"), re.MULTILINE))


def parse(words: list[str]) -> None:
    """Parse a command line as the program would, without running it."""
    words = [word for word in words if word != "--help"]
    # Parsing --version would print it.
    if words in ([], ["--version"]):
        return
    command: Any = whole_command()
    context = command.make_context("tidemark", words)
    while isinstance(command, TyperGroup):
        rest = [*context._protected_args, *context.args]
        if not rest and command.invoke_without_command:
            return
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)


@cache
def whole_command() -> Any:
    return typer.main.get_command(app)


@pytest.mark.parametrize("paper", PAPERS)
def test_links(paper: str):
    for target in LINK.findall(text_of(paper)):
        assert Path(REPOSITORY, paper).parent.joinpath(target).exists(), target


def test_the_examples_of_the_readme_compile(tmp_path: Path):
    for _, name, body in FENCE.findall(text_of("README.md")):
        if name:
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(body, encoding="utf-8")
    manifest = compile_project(tmp_path)
    assert set(manifest.sources) == {"refunds"}
    assert set(manifest.silver) == {"refunds"}
    assert set(manifest.gold) == {"daily_refunds"}
    assert manifest.gold["daily_refunds"].suite


def test_where_things_live():
    [tree] = [body for _, _, body in FENCE.findall(text_of("README.md")) if "spark_jobs/" in body]
    for line in tree.splitlines():
        base = Path(REPOSITORY, "spark_jobs" if line.startswith("  ") else "")
        for name in re.findall(r"([\w-]+)/", line.partition("   ")[0] or line[:32]):
            assert base.joinpath(name).is_dir(), name


@pytest.mark.parametrize("paper", [paper for paper in PAPERS if "runbooks" in paper])
def test_runbooks_have_their_five_parts(paper: str):
    headings = re.findall(r"^## (.+)$", text_of(paper), re.MULTILINE)
    assert headings == ["Symptom", "Meaning", "Look", "Do", "Verify"]


@pytest.mark.parametrize("paper", PAPERS)
def test_prose(paper: str):
    text = FENCE.sub("", text_of(paper))
    assert not re.findall(r"\b(?:simply|just|obviously)\b", text, re.IGNORECASE)
    long = [line for line in text.splitlines() if len(line) >= 90 and not line.startswith("|")]
    assert long == []
