"""What the verbs over a project share: settings, a current manifest, control state."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
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
def open_project(context: typer.Context, *, applied: bool = True) -> Iterator[OpenProject]:
    """The project that ``--project`` names.

    Args:
        context: of the command line.
        applied: as it was applied, where it was; otherwise as its files are now.

    Raises:
        ProblemsError: settings or declarations are wrong; all problems at once.
        ControlUnreachableError: the control database does not answer.
    """
    from spark_jobs.state.store import ControlStore

    settings = load_settings(context.obj)
    manifest = applied_manifest(settings) if applied else current_manifest(settings)
    with ControlStore.open(settings.control_url) as store:
        yield OpenProject(settings, manifest, store)


def applied_manifest(settings: Settings) -> Manifest:
    """What runs: the project as it was applied, or as its files are where it never was.

    Raises:
        ProblemsError: declarations are wrong; all problems at once.
    """
    found = _written(settings)
    return found if found is not None and found.deployment else current_manifest(settings)


def current_manifest(settings: Settings) -> Manifest:
    """The project as its files are now; its manifest is written where nothing was applied.

    Raises:
        ProblemsError: declarations are wrong; all problems at once.
    """
    found = _written(settings)
    if found is not None and _fresh(settings):
        return found
    from spark_jobs.storage.compiled import compile_settings, compiled

    if found is not None and found.deployment:
        return compiled(settings)
    return compile_settings(settings)


def _written(settings: Settings) -> Manifest | None:
    """The manifest's file; None where there is none, or another release wrote it.

    Raises:
        StateDirectoryError: the directory in which it should be is none, or closed to this account.
    """
    from spark_jobs.graph.manifest import Manifest
    from spark_jobs.storage.rights import make_state

    try:
        return Manifest.read(settings.manifest_file)
    except (FileNotFoundError, ValidationError):
        return None
    except OSError:
        make_state(settings.state)
        raise


def chosen_views(project: OpenProject, texts: list[str] | None, *, everything: bool) -> list[str]:
    """The views that a command line selects, those that others read first.

    Raises:
        ViewUnknownError: a name that no view has.
        SelectionSyntaxError: an argument is no selection.
        NothingSelectedError: an argument selects no view.
        BadParameter: neither a selection nor ``--all``, or both.
    """
    if bool(texts) == everything:
        raise typer.BadParameter("name one or more gold views, or pass --all")
    if everything:
        return [entry.name for tier in project.manifest.gold_by_tier() for entry in tier]
    found = views_of(project.settings, project.manifest, texts or [])
    if not found:
        typer.echo("No view of this selection has changed.", err=True)
    return found


def views_of(settings: Settings, manifest: Manifest, texts: Sequence[str]) -> list[str]:
    """The views of a selection; see ``planning.selection`` for its grammar.

    Raises:
        ViewUnknownError: a name that no view has.
        SelectionSyntaxError: an argument is no selection.
        NothingSelectedError: an argument selects no view.
    """
    from spark_jobs.gold.publications import changed_views
    from spark_jobs.planning.selection import names_one_view, selected_views

    for text in filter(names_one_view, texts):
        named_view(manifest, text)
    changed = partial(changed_views, manifest, settings.lake)
    return list(selected_views(manifest, texts, changed=changed))


def named_view(manifest: Manifest, text: str) -> str:
    """The name of a view that somebody wrote with its layer or without.

    Raises:
        ViewUnknownError: no view has it.
    """
    from spark_jobs.gold.errors import ViewUnknownError

    name = text.removeprefix("gold.")
    if name not in manifest.gold:
        raise ViewUnknownError(name, sorted(manifest.gold))
    return name


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
