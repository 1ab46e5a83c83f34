"""Parses YAML with the location of every key and value, for messages."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from spark_jobs.definitions.errors import DeclarationSyntaxError, DuplicateKeyError
from spark_jobs.errors import LakehouseError, Location
from spark_jobs.project_files import BoundedLoader, check_aliases

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Places:
    """Locations of the keys and values of one document."""

    file: str
    first_line: int
    keys: Mapping[Path, Location]
    values: Mapping[Path, Location]

    def of(self, *path: str | int) -> Location:
        """The location of a key, or of the nearest enclosing element."""
        for length in range(len(path), 0, -1):
            place = self.keys.get(path[:length]) or self.values.get(path[:length])
            if place:
                return place
        return Location(self.file, self.first_line)

    def value_of(self, *path: str | int) -> Location:
        """The location of a value, or of the nearest enclosing element."""
        return self.values.get(path) or self.of(*path)


@dataclass(frozen=True)
class Marked:
    """A document: plain data, locations, and duplicate keys."""

    data: Any
    places: Places
    problems: tuple[LakehouseError, ...]


def read_marked(text: str, file: str, *, first_line: int = 1, language: str = "YAML") -> Marked:
    """Read a document whose first line is ``first_line`` of the file.

    Keys are text as written, so that ``on`` or ``no`` can be the name of a column.

    Raises:
        DeclarationSyntaxError: the text is not YAML, is nested too deeply, or has aliases that
            repeat too much.
    """
    offset = first_line - 1
    try:
        loader = BoundedLoader(text)
        try:
            node = loader.get_single_node()
            if node is not None:
                check_aliases(node)
            walk = _Walk(file, offset, loader)
            data = walk.plain(node, ()) if node is not None else None
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise _syntax_error(error, file, offset, language) from error
    except RecursionError as error:
        place = Location(file, first_line)
        raise DeclarationSyntaxError(language, "it is nested too deeply", location=place) from error
    places = Places(file, first_line, walk.keys, walk.values)
    return Marked(data, places, tuple(walk.problems))


class _Walk:
    def __init__(self, file: str, offset: int, loader: BoundedLoader) -> None:
        self.file = file
        self.offset = offset
        self.loader = loader
        self.keys: dict[Path, Location] = {}
        self.values: dict[Path, Location] = {}
        self.problems: list[LakehouseError] = []

    def place(self, node: yaml.Node) -> Location:
        mark = node.start_mark
        return Location(self.file, mark.line + 1 + self.offset, mark.column + 1)

    def plain(self, node: yaml.Node, path: Path) -> Any:
        self.values[path] = self.place(node)
        match node:
            case yaml.MappingNode():
                return self.mapping(node, path)
            case yaml.SequenceNode():
                return [self.plain(one, (*path, at)) for at, one in enumerate(node.value)]
            case _:
                return self.scalar(node)

    def scalar(self, node: yaml.Node) -> Any:
        try:
            return self.loader.construct_object(node)
        except (ValueError, LookupError, AttributeError, TypeError) as error:
            # For instance a date with month 13, or a tag that does not fit its value.
            raise yaml.MarkedYAMLError(
                problem=f"{str(node.value)[:40]!r} is not a value of its type",
                problem_mark=node.start_mark,
            ) from error

    def mapping(self, node: yaml.MappingNode, path: Path) -> dict[Hashable, Any]:
        found: dict[Hashable, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(
                    problem="a key must be one word", problem_mark=key_node.start_mark
                )
            key = key_node.value
            here = (*path, key)
            if key in found:
                first, again = self.keys[here], self.place(key_node)
                self.problems.append(DuplicateKeyError(key, first=first, location=again))
                continue
            self.keys[here] = self.place(key_node)
            found[key] = self.plain(value_node, here)
        return found


def _syntax_error(
    error: yaml.YAMLError, file: str, offset: int, language: str
) -> DeclarationSyntaxError:
    if not isinstance(error, yaml.MarkedYAMLError):
        return DeclarationSyntaxError(
            language, str(error).splitlines()[0], location=Location(file, offset + 1)
        )
    mark = error.problem_mark or error.context_mark
    place = Location(file, mark.line + 1 + offset, mark.column + 1) if mark else Location(file)
    return DeclarationSyntaxError(
        language, error.problem or error.context or "it cannot be read", location=place
    )
