"""Reports unexpected errors: a sentence on the terminal, and a file with the details.

Only the owner can read the file, and it contains no known secret.
"""

from __future__ import annotations

import errno
import os
import platform
import re
import select
import shlex
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from pathlib import Path
from typing import Final

from spark_jobs.errors import LakehouseError
from spark_jobs.settings import Settings, load_settings

# EX_SOFTWARE of sysexits.h: an internal error, neither wrong usage nor a finding.
INTERNAL_ERROR: Final = 70
# Below the state directory.
DIRECTORY: Final = "crashes"
_KEPT: Final = 20
_FIRST_LINE: Final = 200
_PACKAGES: Final = (
    *("tidemark", "pyspark", "delta-spark", "deltalake", "duckdb", "sqlglot", "apache-airflow"),
    *("great-expectations", "pydantic", "sqlalchemy", "confluent-kafka"),
)
_SECRET_NAME: Final = re.compile(r"PASS|SECRET|TOKEN|KEY|CREDENTIAL", re.IGNORECASE)
# Shorter secrets would also match ordinary words.
_SHORTEST: Final = 6
_LARGEST_SECRET: Final = 16_384
_IN_URL: Final = re.compile(r"(://[^\s:/@]*:)[^\s@/]+@")
_ASSIGNED: Final = re.compile(
    r"(?i)\b((?:\w*(?:password|secret|token|passwd|pwd))[\"']?\s*[=:]\s*)[\"']?[^\s\"',;]+"
)
_NO_ROOM: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NO_PATH: Final = {errno.ENOTDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.ELOOP}
_MASK: Final = "***"


class UnforeseenError(LakehouseError):
    """An unexpected error: a defect, or a problem of the machine."""

    condition = "INTERNAL_ERROR"
    said: str
    details: Path | None
    primary = "internal error: {said}"
    hint = "{remedy}"

    @property
    def remedy(self) -> str:
        if self.details:
            return f"The details are in {self.details}; send that file with your report."
        return "Its details could not be written: the disk may be full."


class DiskFullError(LakehouseError):
    """The disk that takes the output, or a file, is full; this is no defect."""

    condition = "DISK_FULL"
    problem: str
    primary = "a write failed: {problem}"
    hint = "{remedy}"

    @property
    def remedy(self) -> str:
        if self.problem.startswith(os.strerror(errno.EFBIG)):
            return "Raise the limit on the size of files (ulimit -f), and run the command again."
        return "Free space for the output and the state directory, and run the command again."


class PermissionDeniedError(LakehouseError):
    """A file or a directory that this account may not read or write; this is no defect."""

    condition = "PERMISSION_DENIED"
    path: str
    problem: str
    primary = "a file cannot be used: {path}: {problem}"
    hint = "Correct its rights, or run the command as the account that owns it."


class PathRefusedError(LakehouseError):
    """A path that cannot be one, for instance below a file; this is no defect."""

    condition = "PATH_REFUSED"
    path: str
    problem: str
    primary = "there can be no such file: {path}: {problem}"
    hint = "Correct the argument or the setting that names it, such as state_dir or lake_root."


def foreseen(error: BaseException) -> LakehouseError | None:
    """The problem to report, if the error is one of the machine and no defect."""
    if not isinstance(error, OSError):
        return None
    if error.errno in _NO_ROOM:
        place = f": {error.filename}" if error.filename else ""
        return DiskFullError(f"{error.strerror}{place}")
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS} and error.filename:
        return PermissionDeniedError(str(error.filename), str(error.strerror))
    if error.errno in _NO_PATH and error.filename:
        return PathRefusedError(str(error.filename), str(error.strerror))
    return None


def unforeseen(error: BaseException, words: Sequence[str]) -> UnforeseenError:
    """Write the details of an error to a file; returns the error that names the file.

    Args:
        error: the exception, with its traceback.
        words: the command line without the program.
    """
    settings = _settings(words)
    secrets = () if settings is None else tuple(_secrets(settings))
    text = redacted(_details(error, words), secrets)
    lines = redacted(str(error), secrets).strip().splitlines()
    said = ": ".join((type(error).__name__, *(one[:_FIRST_LINE] for one in lines[:1])))
    places = [] if settings is None else [settings.state / DIRECTORY]
    for directory in (*places, Path(tempfile.gettempdir())):
        with suppress(OSError):
            return UnforeseenError(said, _written(directory, text))
    return UnforeseenError(said, None)


def redacted(text: str, secrets: Sequence[str]) -> str:
    """The text without these values, and without anything that looks like a password.

    >>> redacted("postgresql://me:open@host/db password=sesame, 12", ())
    'postgresql://me:***@host/db password=***, 12'
    """
    for one in sorted(secrets, key=len, reverse=True):
        text = text.replace(one, _MASK)
    return _ASSIGNED.sub(rf"\1{_MASK}", _IN_URL.sub(rf"\1{_MASK}@", text))


def _settings(words: Sequence[str]) -> Settings | None:
    """Settings of the project on the command line; None if they cannot be read."""
    project: Path | None = None
    for word, following in pairwise((*words, "")):
        if word == "--project":
            project = Path(following)
        elif word.startswith("--project="):
            project = Path(word.partition("=")[2])
    # Any error in them was reported before, or is the one being reported.
    with suppress(Exception):
        return load_settings(project)
    return None


def _details(error: BaseException, words: Sequence[str]) -> str:
    return "\n".join(
        [
            f"at: {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            f"command: tidemark {shlex.join(words)}",
            f"python: {platform.python_version()} on {platform.platform()}",
            *(f"{name}: {number}" for name, number in _versions()),
            "",
            "".join(traceback.format_exception(error)),
        ]
    )


def _versions() -> Iterator[tuple[str, str]]:
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            yield name, version(name)


def _secrets(settings: Settings) -> Iterator[str]:
    """Values that must not be in the file: generated secrets, and those of the environment."""
    yield from _named(os.environ)
    for path in settings.secrets_dir.rglob("*"):
        with suppress(OSError, UnicodeDecodeError):
            if path.is_file() and path.stat().st_size <= _LARGEST_SECRET:
                parts = re.split(r"[\s:=\"',{}]+", path.read_text(encoding="utf-8"))
                yield from (one for one in parts if len(one) >= _SHORTEST)


def _named(variables: Mapping[str, str]) -> Iterator[str]:
    for name, value in variables.items():
        if _SECRET_NAME.search(name) and len(value) >= _SHORTEST:
            yield value


def _written(directory: Path, text: str) -> Path:
    own = directory.name == DIRECTORY
    if own:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    prefix = f"tidemark-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-"
    # Only the owner can read it, with any umask.
    descriptor, path = tempfile.mkstemp(prefix=prefix, suffix=".txt", dir=directory)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)
    if own:
        for old in sorted(directory.glob("tidemark-*.txt"))[:-_KEPT]:
            old.unlink(missing_ok=True)
    return Path(path)


def output_is_gone() -> bool:
    """Whether the reader of the output has ended, as with ``| head``."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            watched = select.poll()
            watched.register(stream.fileno(), 0)
            if any(state & select.POLLERR for _, state in watched.poll(0)):
                return True
    return False


def open_streams() -> None:
    """Open the standard streams that the caller closed, to nowhere.

    Without them the next file that is opened, such as a database, would have the number of one, and
    would get what a child process prints.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # It gets the lowest number that is free, which is that of the closed stream.
            stream = Path(os.devnull).open(mode, encoding="utf-8")  # noqa: SIM115 - it stays open
            os.set_inheritable(stream.fileno(), True)  # noqa: FBT003 - it takes no keyword
            setattr(sys, name, stream)


def discard_output() -> None:
    """Discard all further output, because its reader has ended."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
