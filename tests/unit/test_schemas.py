"""The JSON Schemas say what the models say, and are those that the shipped project has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from spark_jobs.cli.main import app
from spark_jobs.definitions.durations import parse_duration
from spark_jobs.definitions.models import GoldHeader
from spark_jobs.definitions.schemas import (
    EDITOR_SETTINGS,
    SchemaKind,
    json_schema,
    schema_files,
    write_schemas,
)
from spark_jobs.settings import REPOSITORY

PLACES = {
    SchemaKind.SOURCE: ("sources/*.yml",),
    SchemaKind.SILVER: ("sql/silver/*.sql",),
    SchemaKind.GOLD: ("sql/gold/*.sql",),
    SchemaKind.SUITE: ("expectations/*/*.json",),
    SchemaKind.CASE: ("tests/cases/gold/*.yml",),
    SchemaKind.SILVER_CASE: ("tests/cases/silver/*.yml",),
    SchemaKind.SETTINGS: ("tidemark.yml", "profiles/*.yml"),
}


def shipped() -> Iterator[tuple[SchemaKind, Path]]:
    for kind, patterns in PLACES.items():
        for pattern in patterns:
            yield from ((kind, path) for path in sorted(REPOSITORY.glob(pattern)))


def read(kind: SchemaKind, path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    if kind in {SchemaKind.SILVER, SchemaKind.GOLD}:
        text = text.partition("/*")[2].partition("\n")[2].partition("*/")[0]
    # An editor gives times to a schema as texts.
    return json.loads(json.dumps(yaml.safe_load(text) or {}, default=str))


def problems(kind: SchemaKind, content: Any) -> list[str]:
    return [error.message for error in Draft202012Validator(json_schema(kind)).iter_errors(content)]


@pytest.mark.parametrize("kind", list(SchemaKind))
def test_every_shipped_file_fits_its_schema(kind: SchemaKind) -> None:
    files = [path for one, path in shipped() if one is kind]
    assert files
    for path in files:
        assert not problems(kind, read(kind, path)), path


@pytest.mark.parametrize("kind", list(SchemaKind))
def test_a_misspelt_key_and_a_value_of_another_type_do_not_fit(kind: SchemaKind) -> None:
    Draft202012Validator.check_schema(json_schema(kind))
    path = next(path for one, path in shipped() if one is kind)
    content = read(kind, path)
    assert problems(kind, {**content, "descriptions": "x"})
    key = next(iter(json_schema(kind)["properties"]))
    assert problems(kind, {**content, key: [[{}]]})


@pytest.mark.parametrize(
    ("change", "fits"),
    [
        ({"every": "15 minutes"}, True),
        ({"every": "1 Day 12 hours"}, True),
        ({"every": "often"}, False),
        ({"every": 15}, False),
        ({"tags": "one"}, True),
        ({"tags": ["one", "two"]}, True),
        ({"tags": [1]}, False),
        ({"refresh": "sometimes"}, False),
        ({"sinks": [{"kafka": {"topic": "t"}}]}, True),
        ({"sinks": [{"kafka": {"topc": "t"}}]}, False),
    ],
)
def test_short_forms_fit_as_they_do_when_the_file_is_read(
    change: dict[str, Any], fits: bool
) -> None:
    header = {"description": "d", "owner": "o", "refresh": "bulk", **change}
    assert (not problems(SchemaKind.GOLD, header)) is fits
    try:
        GoldHeader.model_validate(header)
    except ValueError:
        assert not fits
    else:
        assert fits


@given(
    st.one_of(
        st.from_regex(r"\s?[0-9]{1,3} ?(Minute|hours|days|week)s?( 2 hours)?", fullmatch=True),
        st.text(max_size=12),
    )
)
def test_a_length_of_time_fits_the_schema_where_it_is_read(text: str) -> None:
    schema = json_schema(SchemaKind.GOLD)["properties"]["every"]
    fits = not list(Draft202012Validator(schema).iter_errors(text))
    # Zero is well written, and refused for what it means; digits of other scripts are read too.
    if text.isascii() and parse_duration(text) is not None:
        assert fits
    if not fits and text.isascii():
        assert parse_duration(text) is None


def test_editor_settings_name_the_schemas(tmp_path: Path) -> None:
    write_schemas(tmp_path)
    settings = json.loads((REPOSITORY / EDITOR_SETTINGS).read_text(encoding="utf-8"))
    assert settings == json.loads((tmp_path / EDITOR_SETTINGS).read_text(encoding="utf-8"))
    wired = [*settings["yaml.schemas"], *(one["url"] for one in settings["json.schemas"])]
    assert all((tmp_path / one).is_file() for one in wired)
    # A second time there is nothing to write.
    assert not write_schemas(tmp_path)


def test_no_schema_holds_a_path_of_a_machine() -> None:
    for _, text in schema_files():
        assert str(REPOSITORY) not in text
        assert "/home/" not in text


def test_an_editor_that_is_set_up_is_left_alone(tmp_path: Path) -> None:
    own = tmp_path / ".vscode/settings.json"
    own.parent.mkdir()
    own.write_text("{}")
    assert len(write_schemas(tmp_path)) == len(SchemaKind)
    assert own.read_text() == "{}"


def test_the_command_prints_one(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["--project", str(tmp_path), "schema", "gold"])
    assert json.loads(result.stdout) == json_schema(SchemaKind.GOLD)
    assert CliRunner().invoke(app, ["schema"]).exit_code == 2
