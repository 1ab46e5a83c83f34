"""Generates JSON Schemas of the project's files from the models that read them.

Editors complete keys and mark mistakes with them. Rules across keys and files are checked by
``tidemark validate`` only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, assert_never

from pydantic import BaseModel

from spark_jobs.definitions.models import (
    CaseFile,
    GoldHeader,
    SilverHeader,
    SourceFile,
    SuiteFile,
)
from spark_jobs.definitions.silver_case import SilverCaseFile
from spark_jobs.settings import Settings

FOLDER: Final = ".vscode/tidemark"
EDITOR_SETTINGS: Final = ".vscode/settings.json"
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


class SchemaKind(StrEnum):
    """A kind of file, or the header of one."""

    SOURCE = "source"
    SILVER = "silver"
    GOLD = "gold"
    SUITE = "suite"
    CASE = "case"
    SILVER_CASE = "silver-case"
    SETTINGS = "settings"


def json_schema(kind: SchemaKind) -> dict[str, Any]:
    """The JSON Schema of a kind of file."""
    found = _model(kind).model_json_schema()
    if kind is SchemaKind.SETTINGS:
        _without_places(found)
        # It is set by the command line.
        del found["properties"]["project_dir"]
        found["required"] = [one for one in found["required"] if one != "project_dir"]
    return {"$schema": _DIALECT, **found}


def schema_files() -> Iterator[tuple[str, str]]:
    """The files for an editor: text by path below the project."""
    for kind in SchemaKind:
        yield f"{FOLDER}/{kind}.schema.json", _text(json_schema(kind))
    wired = {
        "yaml.schemas": {
            _beside(SchemaKind.SOURCE): ["sources/*.yml", "sources/*.yaml"],
            _beside(SchemaKind.CASE): "tests/cases/gold/*.yml",
            _beside(SchemaKind.SILVER_CASE): "tests/cases/silver/*.yml",
            _beside(SchemaKind.SETTINGS): ["tidemark.yml", "profiles/*.yml"],
        },
        "json.schemas": [
            {"fileMatch": ["/expectations/*/*.json"], "url": _beside(SchemaKind.SUITE)}
        ],
    }
    yield EDITOR_SETTINGS, _text(wired)


def write_schemas(project_dir: Path) -> list[Path]:
    """Write the schemas that differ, and the editor's settings if there are none.

    Returns:
        the files that were written.
    """
    written = []
    for name, text in schema_files():
        path = project_dir / name
        if path.exists() and (name == EDITOR_SETTINGS or path.read_text("utf-8") == text):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


def _model(kind: SchemaKind) -> type[BaseModel]:
    match kind:
        case SchemaKind.SOURCE:
            return SourceFile
        case SchemaKind.SILVER:
            return SilverHeader
        case SchemaKind.GOLD:
            return GoldHeader
        case SchemaKind.SUITE:
            return SuiteFile
        case SchemaKind.CASE:
            return CaseFile
        case SchemaKind.SILVER_CASE:
            return SilverCaseFile
        case SchemaKind.SETTINGS:
            return Settings
        case _:
            assert_never(kind)


def _without_places(node: Any) -> None:
    """Drop defaults that are paths, because they are those of this machine."""
    if isinstance(node, dict):
        if node.get("format") == "path":
            node.pop("default", None)
        for value in node.values():
            _without_places(value)
    elif isinstance(node, list):
        for value in node:
            _without_places(value)


def _beside(kind: SchemaKind) -> str:
    return f"./{FOLDER}/{kind}.schema.json"


def _text(value: Any) -> str:
    return json.dumps(value, indent=2) + "\n"
