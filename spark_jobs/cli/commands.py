"""The commands of the command line; each is imported when it is used, for a quick start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, Final

import typer
from typer.main import get_command, get_group

# The module and the name of each command's function or group, in the order of the help.
PLACES: Final = {
    "validate": "validate.validate",
    "watch": "watch.watch",
    "schema": "schema.schema",
    "fmt": "fmt.fmt",
    "graph": "graph.graph",
    "lint": "lint.lint",
    "compile": "manifest.compile_manifest",
    "docs": "docs.app",
    "new": "new.app",
    "stack": "stack.app",
    "stream": "stream.app",
    "test": "cases.run_cases",
    "refresh": "refresh.refresh",
    "replay": "replay.app",
    "rollback": "rollback.rollback",
    "release": "rollback.release",
    "plan": "plan.plan",
    "apply": "apply.apply",
    "diff": "diff.diff",
    "drop": "drop.drop",
    "env": "environments.app",
    "explain": "explain.explain",
    "impact": "impact.impact",
    "verify": "verify.verify",
    "status": "status.status",
    "page": "page.page",
    "quality": "quality.quality",
    "query": "query.query",
    "shell": "shell.shell",
    "endpoint": "endpoint.app",
    "reconcile": "reconcile.reconcile",
    "maintain": "maintain.maintain",
    "upgrade": "upgrade.upgrade",
    "quarantine": "quarantine.app",
    "rebuild": "rebuild.rebuild",
    "forget": "forget.forget",
    "source": "source.app",
    "sink": "sink.app",
    "seed": "seed.seed",
    "load": "load.load",
    "demo": "demo.demo",
}


class Commands(Mapping[str, Any]):
    """Typer's commands by name; reading one imports its module."""

    def __init__(self) -> None:
        self._added: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._added:
            self._added[name] = _command(name, PLACES[name])
        return self._added[name]

    def __iter__(self) -> Iterator[str]:
        return iter(PLACES)

    def __len__(self) -> int:
        return len(PLACES)


def _command(name: str, place: str) -> Any:
    module, _, attribute = place.partition(".")
    found = getattr(import_module(f"spark_jobs.cli.{module}"), attribute)
    if isinstance(found, typer.Typer):
        command: Any = get_group(found)
        command.name = name
        return command
    alone = typer.Typer(add_completion=False)
    alone.command(name)(found)
    return get_command(alone)
