"""The project at another commit, without touching the user's working tree or index."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from spark_jobs.errors import LakehouseError, ProblemsError
from spark_jobs.graph.compile import read_project
from spark_jobs.graph.manifest import Manifest
from spark_jobs.graph.reuse import Value
from spark_jobs.graph.seeds import FOLDER
from spark_jobs.settings import PROFILES, SETTINGS_FILE, Settings, load_settings
from spark_jobs.storage.compiled import DECLARATIONS, delta_schema

# What the compiler reads of a commit: declarations, reference data, and values of variables.
_READ = (*DECLARATIONS, FOLDER, SETTINGS_FILE, PROFILES)
# Ending of schemas of Avro, which may be anywhere in the project.
_SCHEMA = ".avsc"
_ARCHIVE = ("--literal-pathspecs", "archive", "--format=tar")


class GitRefError(LakehouseError):
    """Git cannot find the commit or run the command."""

    condition = "GIT_REF"
    ref: str
    problem: str
    primary = "there is no project at {ref!r} to compare with"
    detail = "{problem}"
    hint = (
        "Name a commit, branch or tag of the project's repository; in a shallow clone, fetch it "
        "first."
    )


def manifest_at(settings: Settings, ref: str) -> tuple[Manifest, list[LakehouseError]]:
    """The project compiled at a commit, as far as possible, and its problems.

    External Delta tables without declared columns are read as they are now.

    Raises:
        GitRefError: there is no such commit or no repository.
    """
    project = settings.project_dir
    with checked_out(project, ref) as copy:

        def schema(location: str) -> dict[str, str]:
            # A path below the copy was relative: use the same path below the project.
            path = Path(location)
            inside = path.is_relative_to(copy)
            return delta_schema(str(project / path.relative_to(copy)) if inside else location)

        return read_project(
            copy,
            delta_schema=schema,
            limits=settings.graph,
            variables=_variables(settings, copy),
        )


def _variables(settings: Settings, copy: Path) -> Mapping[str, Value]:
    """The variables of the commit, as far as the environment does not set them."""
    try:
        return load_settings(copy, profile=settings.profile).variables
    except ProblemsError:
        # Settings of another release, or no such profile yet.
        return settings.variables


@contextmanager
def checked_out(project: Path, ref: str) -> Iterator[Path]:
    """A copy of the project's declarations at a commit, while the context lasts.

    Raises:
        GitRefError: there is no such commit, no repository, or no project in it.
    """
    top = Path(_git(project, ref, "rev-parse", "--show-toplevel").decode().strip())
    inside = _git(project, ref, "rev-parse", "--show-prefix").decode().strip()
    wanted = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}"]
    commit = _git(top, ref, *wanted).decode().strip()
    tree = f"{commit}:{inside}"
    names = os.fsdecode(_git(top, ref, "ls-tree", "-r", "--name-only", "-z", tree)).split("\0")
    there = {name.partition("/")[0] for name in names}
    read = [name for name in _READ if name in there]
    read += [name for name in names if name.endswith(_SCHEMA)]
    with tempfile.TemporaryDirectory(prefix="tidemark-lint-") as folder:
        copy = Path(folder).resolve() / project.name
        copy.mkdir()
        if read:
            archive = _git(top, ref, *_ARCHIVE, tree, "--", *read)
            with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
                packed.extractall(  # noqa: S202 - its filter is stricter than none
                    copy, filter=partial(_with_links, project)
                )
        yield copy


def _with_links(project: Path, member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo:
    """A file of a commit; a link that leads out of the project leads to the same file as now."""
    try:
        return tarfile.data_filter(member, folder)
    except (tarfile.AbsoluteLinkError, tarfile.LinkOutsideDestinationError):
        there = (project / member.name).parent / member.linkname
        return member.replace(linkname=str(there), deep=False)


def _git(folder: Path, ref: str, *words: str) -> bytes:
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, check=False)
    except FileNotFoundError as error:
        raise GitRefError(ref, "The program git is not installed.") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise GitRefError(ref, said[0] if said else "No commit has that name.")
    return done.stdout
