"""The project at another commit, without touching the user's working tree or index."""

from __future__ import annotations

import io
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spark_jobs.errors import LakehouseError
from spark_jobs.graph.compile import read_project
from spark_jobs.graph.manifest import Manifest
from spark_jobs.serving.project import DECLARATIONS
from spark_jobs.settings import Settings
from spark_jobs.storage.compiled import delta_schema


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
            variables=settings.variables,
        )


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
    names = _git(top, ref, "ls-tree", "--name-only", "-z", tree).decode().split("\0")
    folders = [name for name in DECLARATIONS if name in names]
    with tempfile.TemporaryDirectory(prefix="tidemark-lint-") as folder:
        copy = Path(folder).resolve() / project.name
        copy.mkdir()
        if folders:
            archive = _git(top, ref, "archive", "--format=tar", tree, "--", *folders)
            with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
                packed.extractall(copy, filter="data")
        yield copy


def _git(folder: Path, ref: str, *words: str) -> bytes:
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, check=False)
    except FileNotFoundError as error:
        raise GitRefError(ref, "The program git is not installed.") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise GitRefError(ref, said[0] if said else "No commit has that name.")
    return done.stdout
