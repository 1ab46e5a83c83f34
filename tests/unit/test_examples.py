"""The examples in docstrings of the product give what they say."""

from __future__ import annotations

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

from spark_jobs.settings import REPOSITORY

FOLDERS = ("spark_jobs", "benchmarks")
EXAMPLE = re.compile(r"^ +>>> ", re.MULTILINE)
MODULES = [
    str(path.relative_to(REPOSITORY).with_suffix("")).replace("/", ".").removesuffix(".__init__")
    for folder in FOLDERS
    for path in sorted(Path(REPOSITORY, folder).rglob("*.py"))
    if EXAMPLE.search(path.read_text("utf-8"))
]


@pytest.mark.parametrize("module", MODULES)
def test_examples_give_what_they_say(module: str) -> None:
    found = doctest.testmod(import_module(module))
    assert found.attempted
    assert not found.failed
