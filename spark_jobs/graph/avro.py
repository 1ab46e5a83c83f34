"""The schemas of an Avro source, each with the prefix of its records.

Without a prefix any schema, even a wrong one, might decode a record silently. So records must use
one of two encodings: Avro's single-object encoding, whose prefix is a fingerprint of the schema, or
that of schema registries, whose prefix is the registry's id.
https://avro.apache.org/docs/1.12.0/specification/#single-object-encoding
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fastavro.schema import (
    SchemaParseException,
    UnknownType,
    fingerprint,
    parse_schema,
    to_parsing_canonical_form,
)

from spark_jobs.definitions.project import SourceDefinition
from spark_jobs.errors import LakehouseError, SubjectError
from spark_jobs.graph.manifest import AvroSchema
from spark_jobs.project_files import UnreadableFileError, read_text

_SINGLE_OBJECT = "C301"
_REGISTRY = "00"
_INNER = ("items", "values", "type", "fields")


def compile_schemas(
    definition: SourceDefinition, project_dir: Path, problems: list[LakehouseError]
) -> Iterator[AvroSchema]:
    """Read the schema files that a source names; errors are added to ``problems``."""
    declared, subject = definition.declared.schemas, f'source "{definition.name}"'
    numbered = declared if isinstance(declared, dict) else None
    fields: set[str] = set()
    before = len(problems)
    for key, file in declared.items() if isinstance(declared, dict) else enumerate(declared):
        try:
            schema = _read(project_dir / file, file)
            canonical = to_parsing_canonical_form(schema)
        except _UNREADABLE as error:
            place = definition.places.value_of("schemas", key)
            problems.append(AvroSchemaError(subject, file, _first_line(error), location=place))
            continue
        fields |= {one["name"] for one in schema["fields"]}
        yield AvroSchema(
            prefix=_of_registry(str(key)) if numbered else _of_fingerprint(canonical),
            text=json.dumps(schema),
        )
    if fields and len(problems) == before:
        problems += _unknown_columns(definition, fields, subject)


class AvroSchemaError(SubjectError):
    """A file is not a schema that can decode events."""

    condition = "AVRO_SCHEMA"
    file: str
    problem: str
    primary = '{subject}: "{file}" is not a valid schema of records: {problem}'
    hint = (
        "Name a file of the project with an Avro schema in JSON: a record type that does not "
        "contain itself."
    )


class AvroFieldError(SubjectError):
    """A column exists in no schema of its source."""

    condition = "AVRO_FIELD"
    column: str
    known: Sequence[str]
    misspelt = "column"
    primary = '{subject}: no schema has a field "{column}"'
    hint = "The fields are {known}."


class _NoEventError(ValueError):
    """A valid schema that is not a record."""


_UNREADABLE = (UnreadableFileError, RecursionError, ValueError, SchemaParseException, UnknownType)


def _read(path: Path, file: str) -> dict[str, Any]:
    written = json.loads(read_text(path, file))
    if not (isinstance(written, dict) and written.get("type") == "record"):
        raise _NoEventError("it is not a record")
    schema = parse_schema(written, _write_hint=False)
    if not isinstance(schema, dict) or _is_recursive(schema, ()):
        raise _NoEventError("a record contains itself")
    return schema


def _is_recursive(schema: Any, around: tuple[str, ...]) -> bool:
    """Whether a parsed schema, with full names, uses a record within that record."""
    if isinstance(schema, str):
        return schema in around
    if isinstance(schema, list):
        return any(_is_recursive(one, around) for one in schema)
    if schema.get("type") == "record":
        around = (*around, schema["name"])
    return any(_is_recursive(schema[key], around) for key in _INNER if key in schema)


def _of_registry(number: str) -> str:
    return _REGISTRY + f"{int(number):08X}" if number.isdecimal() else ""


def _of_fingerprint(canonical: str) -> str:
    return _SINGLE_OBJECT + fingerprint(canonical, "CRC-64-AVRO").upper()


def _unknown_columns(
    definition: SourceDefinition, fields: set[str], subject: str
) -> Iterator[AvroFieldError]:
    for column in definition.declared.columns:
        if column not in fields:
            place = definition.places.of("columns", column)
            yield AvroFieldError(subject, column, sorted(fields), location=place)


def _first_line(error: BaseException) -> str:
    if isinstance(error, LakehouseError):
        return error.primary
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, UnknownType):
        return f'there is no type "{error.name}"'
    return str(error).splitlines()[0] if str(error) else type(error).__name__
