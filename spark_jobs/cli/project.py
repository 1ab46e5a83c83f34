"""What the verbs over a project share: settings, a current manifest, control state."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from pydantic import ValidationError

from spark_jobs.settings import SETTINGS_FILE, Settings, load_settings

if TYPE_CHECKING:
    from spark_jobs.graph.manifest import Manifest
    from spark_jobs.state.store import ControlStore

DECLARATIONS = ("sources", "sql", "expectations")


@dataclass(frozen=True)
class OpenProject:
    """A project that a verb works on."""

    settings: Settings
    manifest: Manifest
    store: ControlStore


def asker() -> str:
    """Who runs the command, and where, for what is kept of a person's decisions."""
    return f"{getpass.getuser()}@{socket.gethostname()}"


@contextmanager
def open_project(context: typer.Context) -> Iterator[OpenProject]:
    """The project that ``--project`` names.

    Raises:
        ProblemsError: settings or declarations are wrong; all problems at once.
        ControlUnreachableError: the control database does not answer.
    """
    from spark_jobs.state.store import ControlStore

    settings = load_settings(context.obj)
    manifest = current_manifest(settings)
    with ControlStore.open(settings.control_url) as store:
        yield OpenProject(settings, manifest, store)


def current_manifest(settings: Settings) -> Manifest:
    """The compiled project, compiled anew where a declaration is newer.

    Raises:
        ProblemsError: declarations are wrong; all problems at once.
    """
    from spark_jobs.graph.manifest import Manifest

    if _fresh(settings):
        try:
            return Manifest.read(settings.manifest_file)
        except ValidationError:
            pass  # another release wrote it
    from spark_jobs.storage.compiled import compile_settings

    return compile_settings(settings)


def chosen_views(manifest: Manifest, names: list[str] | None, *, everything: bool) -> list[str]:
    """The views that a command line names, those that others read first.

    Raises:
        ViewUnknownError: a name that no view has.
        BadParameter: neither names nor ``--all``, or both.
    """
    from spark_jobs.gold.errors import ViewUnknownError

    if bool(names) == everything:
        raise typer.BadParameter("name one or more gold views, or pass --all")
    wanted = {name.removeprefix("gold.") for name in names or ()}
    for name in sorted(wanted - manifest.gold.keys()):
        raise ViewUnknownError(name, sorted(manifest.gold))
    ordered = [entry.name for tier in manifest.gold_by_tier() for entry in tier]
    return [name for name in ordered if everything or name in wanted]


def _fresh(settings: Settings) -> bool:
    """Whether the manifest is newer than every declaration; a removed file touches its folder."""
    try:
        compiled = settings.manifest_file.stat().st_mtime_ns
    except FileNotFoundError:
        return False
    declarations = _declarations(settings.project_dir)
    try:
        return all(path.stat().st_mtime_ns < compiled for path in declarations)
    except OSError:
        # A link that leads nowhere: compiling says so.
        return False


def _declarations(project: Path) -> Iterator[Path]:
    if (project / SETTINGS_FILE).exists():
        yield project / SETTINGS_FILE
    for folder in DECLARATIONS:
        if (project / folder).exists():
            yield project / folder
            yield from (project / folder).rglob("*")
