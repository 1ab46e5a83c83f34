"""Lists the files of a project, with the names that they declare."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from spark_jobs.definitions.errors import (
    DuplicateNameError,
    FileNameError,
    MisplacedFileError,
)
from spark_jobs.errors import LakehouseError, Location
from spark_jobs.names import IDENTIFIER
from spark_jobs.project_files import UnreadableFileError, read_text

_KINDS = {
    "sources": "source",
    "sql/silver": "silver table",
    "sql/gold": "gold view",
    "sql/macros": "macro",
    "sql/ephemeral": "ephemeral view",
    "expectations/silver": "suite",
    "expectations/gold": "suite",
}
READ_FOLDERS = tuple(_KINDS)
_EXTENSIONS = {"sources": ("yml", "yaml"), "sql": ("sql",), "expectations": ("json",)}


@dataclass(frozen=True)
class DeclaredFile:
    """A declaration file: its name without the ending, its path, its text."""

    name: str
    # Relative to the project, with forward slashes.
    file: str
    text: str


def declared_files(
    project_dir: Path,
    directory: str,
    extensions: tuple[str, ...],
    problems: list[LakehouseError],
) -> Iterator[DeclaredFile]:
    """The files of one directory, sorted; errors are added to ``problems``."""
    kind = _KINDS[directory]
    first: dict[str, str] = {}
    for path in sorted((project_dir / directory).glob("*")):
        if path.name.startswith(".") or path.suffix.lower()[1:] not in extensions:
            continue
        file = f"{directory}/{path.name}"
        place = Location(file)
        if not IDENTIFIER.fullmatch(path.stem):
            problems.append(FileNameError(kind, path.stem, location=place))
            continue
        if path.stem in first:
            problems.append(
                DuplicateNameError(kind, path.stem, first=first[path.stem], location=place)
            )
            continue
        first[path.stem] = file
        try:
            text = read_text(path, file)
        except UnreadableFileError as error:
            problems.append(error)
            continue
        yield DeclaredFile(path.stem, file, text)


def stray_files(project_dir: Path) -> Iterator[LakehouseError]:
    """Declaration files in directories that are not read, for instance ``sql/bronze/``."""
    for top, extensions in _EXTENSIONS.items():
        read = [project_dir / directory for directory in _KINDS if directory.startswith(top)]
        for path in sorted((project_dir / top).rglob("*")):
            if path.suffix.lower()[1:] not in extensions or path.parent in read:
                continue
            relative = path.relative_to(project_dir)
            if any(part.startswith(".") for part in relative.parts) or not path.is_file():
                continue
            places = " or ".join(f"{directory.relative_to(project_dir)}/" for directory in read)
            yield MisplacedFileError(
                f"Move it to {places}.", location=Location(relative.as_posix())
            )
