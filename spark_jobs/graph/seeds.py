"""The file of a ``format: csv`` source: its location, and its header."""

from __future__ import annotations

import csv
import hashlib
import io
import re
from pathlib import Path
from typing import Final

from spark_jobs.definitions.errors import UnexpectedValueError
from spark_jobs.definitions.project import SourceDefinition
from spark_jobs.errors import LakehouseError, Location
from spark_jobs.graph.errors import SeedFileError, SeedHeaderError

FOLDER: Final = "seeds"
MOST_BYTES: Final = 64 * 2**20
# Types whose values can be written as text exactly.
_KINDS = re.compile(
    r"boolean|tinyint|smallint|int|bigint|double|string|date|timestamp|timestamp_ntz"
    r"|decimal\(\d+,\d+\)"
)
_ENDING = ".csv"


def seed_bytes(project_dir: Path, path: str) -> bytes:
    """The content of the file.

    Args:
        project_dir: the project directory.
        path: relative to it; after following links it must be below ``seeds/``.

    Raises:
        SeedFileError: it is elsewhere, missing, not a regular file, or too large.
    """
    folder = project_dir.resolve() / FOLDER
    parts = Path(path).parts
    if Path(path).is_absolute() or ".." in parts or parts[:1] != (FOLDER,):
        raise SeedFileError(path, f"it is not below {FOLDER}/ of the project")
    try:
        found = (project_dir / path).resolve(strict=True)
        if not found.is_relative_to(folder):
            raise SeedFileError(path, f"a link leads out of {FOLDER}/")
        if not found.is_file():
            raise SeedFileError(path, "it is not a regular file")
        with found.open("rb") as opened:
            content = opened.read(MOST_BYTES + 1)
    except FileNotFoundError as error:
        raise SeedFileError(path, "it does not exist") from error
    except (OSError, RuntimeError, ValueError) as error:
        raise SeedFileError(path, getattr(error, "strerror", None) or str(error)) from error
    if len(content) > MOST_BYTES:
        raise SeedFileError(path, f"it is larger than {MOST_BYTES >> 20} MiB")
    return content


def seed_header(content: bytes) -> list[str]:
    """The column names in the first line.

    Raises:
        ValueError: it is not UTF-8, or not CSV.
    """
    # Read only the first line; the rest has rows.
    first = re.split(rb"\r\n|\n|\r", content, maxsplit=1)[0].decode("utf-8-sig")
    try:
        return next(csv.reader(io.StringIO(first), strict=True), [])
    except csv.Error as error:
        raise ValueError(str(error)) from error


def seed_digest(content: bytes) -> str:
    """A digest of the content."""
    return hashlib.sha256(content).hexdigest()


def check_seed(
    definition: SourceDefinition, project_dir: Path, problems: list[LakehouseError]
) -> str | None:
    """Check the columns' types and the file's header; returns the file's digest."""
    declared, places = definition.declared, definition.places
    subject = f'source "{definition.name}"'
    for name, column in declared.columns.items():
        reason = None
        if not _KINDS.fullmatch(column.type):
            reason = f"{column.type.upper()} cannot be read from a CSV file"
        elif name in declared.keys and column.type == "double":
            reason = "a DOUBLE cannot be a key"
        if reason:
            hint = "Use BOOLEAN, an integer type, DECIMAL(p,s), DOUBLE, STRING, DATE or a timestamp"
            place = places.of("columns", name)
            problems.append(
                UnexpectedValueError(
                    f'{subject}: column "{name}"', "type", reason, f"{hint}.", location=place
                )
            )
    if declared.path is None:
        return None
    place = places.value_of("path")
    if not declared.path.lower().endswith(_ENDING):
        problems.append(
            SeedFileError(declared.path, f"its name does not end with {_ENDING}", location=place)
        )
        return None
    try:
        content = seed_bytes(project_dir, declared.path)
    except SeedFileError as error:
        problems.append(SeedFileError(error.path, error.problem, location=place))
        return None
    try:
        check_header(definition.name, declared.path, content, list(declared.columns))
    except SeedHeaderError as error:
        problems.append(error)
    return seed_digest(content)


def check_header(
    name: str,
    path: str,
    content: bytes,
    columns: list[str],
) -> None:
    """Check that the file has the declared columns, each once, in any order.

    Raises:
        SeedHeaderError: it has others.
    """
    try:
        found = seed_header(content)
    except ValueError as error:
        raise SeedHeaderError(
            name, path, f"it cannot be read: {error}", location=Location(path, 1)
        ) from error
    lacking = [one for one in columns if one not in found]
    unknown = [one for one in found if one not in columns]
    twice = sorted({one for one in found if found.count(one) > 1})
    told = [
        f"{word} {', '.join(map(repr, names))}"
        for word, names in (("lacks", lacking), ("also has", unknown), ("repeats", twice))
        if names
    ]
    if told:
        raise SeedHeaderError(name, path, f"it {' and '.join(told)}", location=Location(path, 1))
