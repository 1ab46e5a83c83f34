"""The file of a source: its location, and whether it fits the declared columns."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Final

from spark_jobs.definitions.errors import UnexpectedValueError
from spark_jobs.definitions.project import SourceDefinition
from spark_jobs.errors import LakehouseError
from spark_jobs.graph.errors import SeedFileError
from spark_jobs.graph.seed_columns import column_problems

FOLDER: Final = "seeds"
MOST_BYTES: Final = 64 * 2**20
# Types whose values can be written as text exactly.
_KINDS = re.compile(
    r"boolean|tinyint|smallint|int|bigint|double|string|date|timestamp|timestamp_ntz"
    r"|decimal\(\d+,\d+\)"
)


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


def seed_digest(content: bytes) -> str:
    """A digest of the content."""
    return hashlib.sha256(content).hexdigest()


def check_seed(
    definition: SourceDefinition, project_dir: Path, problems: list[LakehouseError]
) -> str | None:
    """Check the columns' types and the file's columns; returns the file's digest."""
    declared, places = definition.declared, definition.places
    subject = f'source "{definition.name}"'
    for name, column in declared.columns.items():
        reason = None
        if not _KINDS.fullmatch(column.type):
            reason = f"{column.type.upper()} cannot be read from a file"
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
    ending = f".{declared.format}"
    if not declared.path.lower().endswith(ending):
        problem = f"its name does not end with {ending}"
        problems.append(SeedFileError(declared.path, problem, location=place))
        return None
    try:
        content = seed_bytes(project_dir, declared.path)
    except SeedFileError as error:
        problems.append(SeedFileError(error.path, error.problem, location=place))
        return None
    problems += column_problems(
        definition.name,
        declared.path,
        content,
        form=declared.format,
        columns={name: one.type for name, one in declared.columns.items()},
        places=places,
    )
    return seed_digest(content)
