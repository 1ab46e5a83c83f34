"""The project of this repository, compiled once in a process."""

from __future__ import annotations

from functools import cache

from spark_jobs.graph.compile import compile_project
from spark_jobs.graph.manifest import Manifest
from spark_jobs.settings import REPOSITORY


@cache
def shipped_project() -> Manifest:
    """The manifest; nothing may modify it."""
    return compile_project(REPOSITORY)
