"""Compiled views of the last run, so that only changed views are compiled again.

A view's entry is a function of its file, of what is known of the tables that it reads, and of the
compiler's code. Each entry is stored with digests of these.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from spark_jobs.definitions.project import GoldDefinition
from spark_jobs.graph.manifest import GoldEntry

_PACKAGE = Path(__file__).resolve().parent.parent
# The folders with code that compiles views.
_COMPILER = ("definitions", "graph")


class CachedView(BaseModel):
    """A compiled view.

    Attributes:
        definition: digest of its file.
        inputs: digest of what is known of the tables that it reads.
        entry: without what comes from the whole graph: tier, upstream and downstream.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    definition: str
    inputs: str
    entry: GoldEntry


class _Stored(BaseModel):
    """The file's content."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    code: str
    views: dict[str, CachedView]


@dataclass
class CompileCache:
    """The views that were compiled before, and those that are added.

    Attributes:
        views: by name.
        changed: whether a view was added or removed.
    """

    views: dict[str, CachedView] = field(default_factory=dict)
    changed: bool = False

    @classmethod
    def parse(cls, text: str | bytes) -> CompileCache:
        """The cache of a file; an empty one if another release or another compiler wrote it."""
        try:
            found = _Stored.model_validate_json(text)
        except ValidationError:
            return cls()
        return cls(dict(found.views)) if found.code == code_digest() else cls()

    def text(self) -> str:
        """The content of the file."""
        return _Stored(code=code_digest(), views=self.views).model_dump_json(exclude_defaults=True)

    def entry(self, name: str, definition: str) -> GoldEntry | None:
        """The entry of a view whose file has not changed; its inputs may have changed."""
        found = self.views.get(name)
        return found.entry if found and found.definition == definition else None

    def is_current(self, name: str, inputs: str) -> bool:
        """Whether the inputs of a view are as they were."""
        return self.views[name].inputs == inputs

    def add(self, view: CachedView) -> None:
        """Store a view that compiled without problems."""
        self.views[view.entry.name] = view
        self.changed = True

    def keep(self, names: Collection[str]) -> None:
        """Drop the views with other names."""
        for name in self.views.keys() - set(names):
            del self.views[name]
            self.changed = True


def definition_digest(definition: GoldDefinition) -> str:
    """A digest of a view's file, its macros and variables included."""
    header = definition.header.model_dump(mode="json") if definition.header else None
    return _digest([definition.file, definition.sql, definition.padded, header])


def inputs_digest(inputs: Mapping[str, Mapping[str, Any]]) -> str:
    """A digest of what is known of a view's inputs: JSON objects, by ``layer.name``."""
    return _digest({name: inputs[name] for name in sorted(inputs)})


@cache
def code_digest() -> str:
    """A digest of the compiler: of its files' names, sizes and times, and of what it calls."""
    files = (path for folder in _COMPILER for path in (_PACKAGE / folder).rglob("*.py"))
    found = [(str(path), (at := path.stat()).st_size, at.st_mtime_ns) for path in sorted(files)]
    return _digest([found, version("sqlglot"), version("pydantic"), sys.version])


def _digest(content: object) -> str:
    # The order of columns matters.
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()
