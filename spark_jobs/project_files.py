"""Reads files that users write: regular text files of bounded size; others are errors."""

from __future__ import annotations

import os
import stat
from dataclasses import KW_ONLY
from pathlib import Path
from typing import Any, Final

import yaml

from spark_jobs.errors import LocatedError, Location, SettingsFileError

# Far above the size of any declaration, and read within milliseconds.
MOST_BYTES: Final = 65_536
# Maximum number of values that the aliases of a document may repeat.
MOST_REPEATED: Final = 10_000
# Each open bracket slows the scanner down, so deep nesting is refused while scanning.
MOST_NESTED: Final = 100
_KINDS: Final = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class UnreadableFileError(LocatedError):
    """A file that cannot be read as text of a usual size."""

    condition = "UNREADABLE_FILE"
    problem: str
    _: KW_ONLY
    hint: str
    primary = "the file cannot be read: {problem}"


def read_text(path: Path, file: str, *, encoding: str = "utf-8-sig") -> str:
    """The text of a file of the project, without a byte order mark.

    A pipe or a device is not opened, because reading from it might never end.

    Args:
        path: of the file.
        file: its name in messages.
        encoding: ``utf-8`` keeps the byte order mark.

    Raises:
        UnreadableFileError: it is not a regular file, larger than 64 KiB, or not UTF-8.
    """
    place = Location(file)
    try:
        _check_kind(path.stat().st_mode, place)
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as opened:
            # The file may have been replaced since.
            _check_kind(os.fstat(descriptor).st_mode, place)
            content = opened.read(MOST_BYTES + 1)
    except OSError as error:
        hint = "Correct its rights or the link, or remove it."
        problem = error.strerror or type(error).__name__
        raise UnreadableFileError(problem, hint=hint, location=place) from error
    if len(content) > MOST_BYTES:
        problem = f"it is larger than {MOST_BYTES:,} bytes"
        hint = "Remove it, or split it; a declaration is a few lines."
        raise UnreadableFileError(problem, hint=hint, location=place)
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        place = Location(file, content.count(b"\n", 0, error.start) + 1)
        hint = "Save the file as UTF-8 text."
        raise UnreadableFileError("it is not UTF-8", hint=hint, location=place) from error


def _check_kind(mode: int, place: Location) -> None:
    if stat.S_ISREG(mode):
        return
    kind = next((name for test, name in _KINDS if test(mode)), "no regular file")
    hint = "Put a regular file with text there, or remove it."
    raise UnreadableFileError(f"it is {kind}", hint=hint, location=place)


class BoundedLoader(yaml.SafeLoader):
    """PyYAML's safe loader, which refuses brackets nested more than ``MOST_NESTED`` deep."""

    def fetch_flow_collection_start(self, TokenClass: type[yaml.Token]) -> None:  # noqa: N803
        if self.flow_level >= MOST_NESTED:
            raise yaml.MarkedYAMLError(
                problem="it is nested too deeply", problem_mark=self.get_mark()
            )
        super().fetch_flow_collection_start(TokenClass)


def check_aliases(root: yaml.Node) -> None:
    """Check that a document stays small when its aliases are expanded.

    Raises:
        MarkedYAMLError: an alias refers to itself, or the aliases repeat too much.
    """
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()
    written = 0

    def size(node: yaml.Node) -> int:
        nonlocal written
        known = sizes.get(id(node))
        if known is not None:
            return known
        if id(node) in open_nodes:
            raise yaml.MarkedYAMLError(
                problem="an alias refers to itself", problem_mark=node.start_mark
            )
        open_nodes.add(id(node))
        total = 1
        for child in node.value if isinstance(node, yaml.CollectionNode) else ():
            total += sum(map(size, child)) if isinstance(child, tuple) else size(child)
        open_nodes.discard(id(node))
        written += 1
        sizes[id(node)] = total
        return total

    if size(root) - written > MOST_REPEATED:
        raise yaml.MarkedYAMLError(
            problem=f"its aliases repeat more than {MOST_REPEATED:,} values",
            problem_mark=root.start_mark,
        )


def read_nodes(path: Path, file: str) -> yaml.Node | None:
    """The YAML of a settings file with the place of each value; None if there is none.

    Args:
        path: of the file.
        file: its name in messages.

    Raises:
        SettingsFileError: it is not YAML.
        UnreadableFileError: it is not a regular file of a usual size with UTF-8 text.
    """
    return _settings_yaml(path, file)[0]


def read_mapping(path: Path, file: str) -> dict[Any, Any] | None:
    """The keys and values of a settings file; None if there are none.

    Args:
        path: of the file.
        file: its name in messages.

    Raises:
        SettingsFileError: it is not YAML, or no mapping.
        UnreadableFileError: it is not a regular file of a usual size with UTF-8 text.
    """
    found = _settings_yaml(path, file)[1]
    if not isinstance(found, dict | None):
        problem = f"it holds a {type(found).__name__} and no keys"
        raise SettingsFileError(problem, location=Location(file))
    return found


def _settings_yaml(path: Path, file: str) -> tuple[yaml.Node | None, object]:
    # True for a broken link too, which is then refused.
    if not os.path.lexists(path):
        return None, None
    text = read_text(path, file)
    try:
        if (node := yaml.compose(text, BoundedLoader)) is not None:
            check_aliases(node)
        return node, yaml.load(text, BoundedLoader)  # noqa: S506 - a safe loader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = Location(file, mark.line + 1, mark.column + 1) if mark else Location(file)
        raise SettingsFileError(error.problem or "it is not YAML", location=place) from error
    except RecursionError as error:
        raise SettingsFileError("it is nested too deeply", location=Location(file)) from error
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError) as error:
        first = str(error).partition("\n")[0]
        raise SettingsFileError(first, location=Location(file)) from error
