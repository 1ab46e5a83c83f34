"""Writes the first file of a declaration; it is valid as it is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import yaml

from spark_jobs.definitions.errors import FileNameError
from spark_jobs.errors import LocatedError, Location
from spark_jobs.names import IDENTIFIER

_SOURCE = """\
description: Events of {name}, one record each.
owner: data
format: json          # json | avro | debezium | delta | csv | jsonl | parquet
topic: {topic}
columns:
  event_id: {{type: STRING, required: true}}
  event_time: {{type: TIMESTAMP, required: true}}
  # Spark SQL types; for example: amount: "DECIMAL(12,2)"
event_id: event_id
event_time: event_time
watermark: 24 hours
"""

_SILVER = """\
/* silver
description: {name}, typed, each event once.
owner: data
*/
SELECT
{columns}
FROM {source} AS s
"""

_GOLD = """\
/* gold
description: Number of rows of {source}{unit}.
owner: data
refresh: micro-batch
every: 15 minutes
freshness: 30 minutes
*/
{select}
"""


def write_source(project_dir: Path, name: str) -> Path:
    """Write a new source.

    Raises:
        FileNameError: the name is not a valid table name.
        AlreadyDeclaredError: the source exists.
    """
    other = project_dir / f"sources/{name}.yaml"
    if other.exists():
        raise _exists("source", name, other, project_dir)
    # YAML reads words such as null and yes as something else.
    topic = name if yaml.safe_load(name) == name else f'"{name}"'
    text = _SOURCE.format(name=name, topic=topic)
    return _write(project_dir, f"sources/{name}.yml", "source", text)


def write_silver(project_dir: Path, name: str, *, source: str, columns: Sequence[str]) -> Path:
    """Write a new silver table over a source with these columns.

    Args:
        project_dir: the project.
        name: of the table.
        source: its table as a query names it.
        columns: of the source.

    Raises:
        FileNameError: the name is not a valid table name.
        AlreadyDeclaredError: the table exists.
    """
    lines = ",\n".join(f"  s.{column}" for column in columns)
    text = _SILVER.format(name=name, source=source, columns=lines)
    return _write(project_dir, f"sql/silver/{name}.sql", "silver table", text)


def write_gold(project_dir: Path, name: str, *, source: str, time: str | None) -> Path:
    """Write a new gold view over a table; it counts rows per day if the table has a time.

    Args:
        project_dir: the project.
        name: of the view.
        source: the table as a query names it.
        time: a column of it.

    Raises:
        FileNameError: the name is not a valid table name.
        AlreadyDeclaredError: the view exists.
    """
    count = f"  COUNT(*) AS row_count -- how many\nFROM {source} AS t"
    select = f"SELECT\n{count}"
    if time:
        select = f"SELECT\n  CAST(t.{time} AS DATE) AS day,\n{count}\nGROUP BY ALL"
    text = _GOLD.format(source=source, unit=" per day" if time else "", select=select)
    return _write(project_dir, f"sql/gold/{name}.sql", "gold view", text)


def _write(project_dir: Path, file: str, kind: str, text: str) -> Path:
    path = project_dir / file
    if not IDENTIFIER.fullmatch(path.stem):
        raise FileNameError(kind, path.stem, location=Location(file))
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="utf-8") as handle:
            handle.write(text)
    except FileExistsError as error:
        raise _exists(kind, path.stem, path, project_dir) from error
    return path


class AlreadyDeclaredError(LocatedError):
    """A new declaration with an existing name."""

    condition = "ALREADY_DECLARED"
    kind: str
    name: str
    primary = '{kind} "{name}" already exists'
    hint = "Edit the file, or choose another name."


def _exists(kind: str, name: str, path: Path, project_dir: Path) -> AlreadyDeclaredError:
    place = Location(path.relative_to(project_dir).as_posix())
    return AlreadyDeclaredError(kind, name, location=place)
