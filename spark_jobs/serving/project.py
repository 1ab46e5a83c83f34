"""An open project for the verbs of the command line: settings, current manifest, control store."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import typer
from pydantic import ValidationError

from spark_jobs.names import Layer
from spark_jobs.settings import Settings, load_settings

if TYPE_CHECKING:
    from spark_jobs.graph.manifest import Manifest
    from spark_jobs.state.store import ControlStore


@dataclass(frozen=True)
class OpenProject:
    """The project of a command."""

    settings: Settings
    manifest: Manifest
    store: ControlStore


def asker() -> str:
    """User and host of the command, for records of a person's decisions."""
    return f"{getpass.getuser()}@{socket.gethostname()}"


@contextmanager
def open_project(context: typer.Context, *, applied: bool = True) -> Iterator[OpenProject]:
    """The project of ``--project``.

    Args:
        context: of the command line.
        applied: use the manifest that was applied, if any; otherwise the current files.

    Raises:
        ProblemsError: settings or declarations have errors; all at once.
        ControlUnreachableError: the control database cannot be reached.
    """
    from spark_jobs.state.store import ControlStore

    settings = load_settings(context.obj)
    manifest = applied_manifest(settings) if applied else current_manifest(settings)
    with ControlStore.open(settings.control_url) as store:
        yield OpenProject(settings, manifest, store)


def applied_manifest(settings: Settings) -> Manifest:
    """The running manifest: as applied, or from the files if nothing was applied.

    Raises:
        ProblemsError: declarations have errors; all at once.
    """
    found = _written(settings)
    return found if found is not None and found.deployment else current_manifest(settings)


def current_manifest(settings: Settings) -> Manifest:
    """The manifest of the current files; written to its file if nothing was applied.

    It is not written either if the environment sets variables: schedules and streams read the file,
    and the values are for this command.

    Raises:
        ProblemsError: declarations have errors; all at once.
    """
    from spark_jobs.storage.compiled import compile_settings, compiled, inputs_digest

    found = _written(settings)
    if found is not None and found.compiled_from == inputs_digest(settings, found):
        return found
    if (found is not None and found.deployment) or _variables_in_environment():
        return compiled(settings)
    return compile_settings(settings)


def _variables_in_environment() -> bool:
    return any(name.upper().startswith("TIDEMARK_VARIABLES") for name in os.environ)


def _written(settings: Settings) -> Manifest | None:
    """The manifest file; None if it is missing or another release wrote it.

    Raises:
        StateDirectoryError: its directory is no directory, or closed to this account.
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
    """The views that command line arguments select, upstream views first.

    Raises:
        ViewUnknownError: there is no view of that name.
        SelectionSyntaxError: an argument is not a selection.
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
        ViewUnknownError: there is no view of that name.
        SelectionSyntaxError: an argument is not a selection.
        NothingSelectedError: an argument selects no view.
    """
    from spark_jobs.gold.base.publications import changed_views
    from spark_jobs.planning.selection import names_one_view, selected_views

    for text in filter(names_one_view, texts):
        named_view(manifest, text)
    changed = partial(changed_views, manifest, settings.lake)
    return list(selected_views(manifest, texts, changed=changed))


def tables_of(settings: Settings, manifest: Manifest, texts: Sequence[str]) -> set[str]:
    """The gold views and silver tables of a selection, as ``layer.name``.

    Raises:
        ViewUnknownError: there is no view of that name.
        SilverTableUnknownError: there is no silver table of that name.
        SelectionSyntaxError: an argument is not a selection.
        NothingSelectedError: an argument selects neither a view nor a silver table.
    """
    from spark_jobs.gold.base.publications import changed_views
    from spark_jobs.planning.selection import names_one_table, selected_tables
    from spark_jobs.silver.errors import SilverTableUnknownError

    for text in filter(names_one_table, texts):
        name = text.removeprefix("silver.")
        if name == text:
            named_view(manifest, text)
        elif name not in manifest.silver:
            raise SilverTableUnknownError(name, sorted(manifest.silver))
    changed = partial(changed_views, manifest, settings.lake)
    layers = (Layer.GOLD, Layer.SILVER)
    return selected_tables(manifest, texts, changed=changed, layers=layers)


def named_view(manifest: Manifest, text: str) -> str:
    """The name of a view, given with or without its layer.

    Raises:
        ViewUnknownError: there is no such view.
    """
    from spark_jobs.gold.base.errors import ViewUnknownError

    name = text.removeprefix("gold.")
    if name not in manifest.gold:
        raise ViewUnknownError(name, sorted(manifest.gold))
    return name
