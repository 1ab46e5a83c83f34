"""What `tidemark upgrade` changes, prints and refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from sqlalchemy import text
from typer.testing import CliRunner

from spark_jobs.bronze.table import COLUMNS
from spark_jobs.cli.main import app
from spark_jobs.graph.manifest import Manifest
from spark_jobs.names import BronzeColumn
from spark_jobs.planning.errors import WatermarkNewerError
from spark_jobs.planning.vector import VersionVector
from spark_jobs.planning.watermark import FORMAT, MARK, Watermark
from spark_jobs.settings import Settings, load_settings
from spark_jobs.state.engine import make_engine
from spark_jobs.state.errors import ControlSchemaNewerError
from spark_jobs.state.migrate import found_version
from spark_jobs.state.tables import SCHEMA_VERSION
from spark_jobs.state.types import utc_now
from spark_jobs.storage.checkpoints import write_text
from spark_jobs.storage.errors import CheckpointFormatError
from spark_jobs.streaming.application import StreamsAlreadyRunningError, sole_application
from tests.golden.declaration_cases import write_project

SCHEMAS = Path(__file__).parents[1] / "state/schemas"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A project whose control database the first release made."""
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    settings = load_settings(write_project(tmp_path / "project", {}))
    engine = make_engine(settings.control_url)
    with engine.begin() as connection:
        for name in ("1.sqlite.sql", "rows.sql"):
            for statement in (SCHEMAS / name).read_text().split(";\n"):
                connection.exec_driver_sql(statement).close()
        stamp = "INSERT INTO tidemark_schema VALUES (1, 1, '2024-05-01 00:00:00.000000')"
        connection.exec_driver_sql(stamp).close()
    engine.dispose()
    return settings


def upgrade(settings: Settings, *words: str, status: int = 0) -> dict[str, dict[str, Any]]:
    call = ["--project", str(settings.project_dir), "upgrade", *words, "--json"]
    done = CliRunner().invoke(app, call, catch_exceptions=False)
    assert done.exit_code == status, done.output
    return {one["part"]: one for one in json.loads(done.stdout)}


def files(settings: Settings) -> dict[Path, bytes]:
    """All that lies below the state directory, the lock files aside."""
    found = [path for path in settings.state.rglob("*") if path.is_file()]
    return {path: path.read_bytes() for path in found if path.parent.name != "_locks"}


def publish(settings: Settings, fingerprint: str, **changed: object) -> None:
    mark = Watermark(
        view="spend",
        sequence=1,
        epoch=1,
        fingerprint=fingerprint,
        rule="full",
        vector=VersionVector({}),
        tick="t",
        attempt="a",
        clock=utc_now(),
    )
    said = json.dumps({**mark.as_metadata(), **changed})
    write_deltalake(
        f"{settings.lake}/gold/spend",
        pa.table({"user_id": [1]}),
        mode="overwrite",
        commit_properties=CommitProperties(custom_metadata={"userMetadata": said}),
    )


def test_looking_changes_nothing_and_says_that_there_is_something_to_do(settings) -> None:
    before = files(settings)
    told = upgrade(settings, "--check", status=1)
    assert told["control database"]["found"] == "schema 1"
    assert told["control database"]["outcome"] == f"schema {SCHEMA_VERSION}"
    assert told["manifest"]["pending"]
    assert files(settings) == before


def test_an_upgrade_is_done_once(settings) -> None:
    assert upgrade(settings)["control database"]["pending"]
    assert found_version(settings.control_url) == SCHEMA_VERSION
    assert set(Manifest.read(settings.manifest_file).gold) == {"spend"}
    before = files(settings)
    again = upgrade(settings, "--check")
    assert not [one for one in again.values() if one["pending"]]
    assert upgrade(settings) == again
    # The manifest is the same text; the database was not written.
    assert files(settings) == before


def test_a_manifest_that_another_release_wrote_is_recompiled(settings) -> None:
    upgrade(settings)
    whole = json.loads(settings.manifest_file.read_text())
    for wrong in ({**whole, "format": 0}, {**whole, "project": "other"}):
        settings.manifest_file.write_text(json.dumps(wrong))
        assert upgrade(settings)["manifest"]["outcome"] == "compiled"
        assert json.loads(settings.manifest_file.read_text()) == whole


def test_recomputed_views_are_listed(settings) -> None:
    upgrade(settings)
    assert "gold.spend" not in upgrade(settings)
    publish(settings, Manifest.read(settings.manifest_file).gold["spend"].fingerprint)
    assert upgrade(settings)["gold.spend"]["outcome"] == "current"
    publish(settings, "of an earlier release")
    told = upgrade(settings, "--check")["gold.spend"]
    assert (told["found"], told["pending"]) == ("version 1", False)
    assert told["outcome"].startswith("defined otherwise")


def test_the_plan_shows_what_the_streams_will_do(settings) -> None:
    held = [one for one in COLUMNS if one.name != BronzeColumn.HEADERS]
    bronze = f"{settings.lake}/bronze/orders"
    write_deltalake(bronze, pa.table({column.name: ["x"] for column in held}))
    checkpoint = f"{settings.lake}/_checkpoints/bronze.orders/1"
    for batch in (0, 1):
        write_text(f"{checkpoint}/offsets/{batch}", f'v1\n{{}}\n{{"orders":{{"0":{batch}}}}}')
    write_text(f"{checkpoint}/commits/0", "v1\n{}")
    told = upgrade(settings)
    assert told["bronze.orders"]["outcome"] == "the streams add headers when they start"
    assert told["stream of bronze.orders"]["outcome"] == "batch 1 runs again"
    write_text(f"{checkpoint}/commits/1", "v1\n{}")
    assert upgrade(settings)["stream of bronze.orders"]["outcome"] == "current"
    assert DeltaTable(bronze).version() == 0


def newer_database(settings: Settings) -> None:
    engine = make_engine(settings.control_url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE tidemark_schema SET version = 99")).close()
    engine.dispose()


def newer_checkpoint(settings: Settings) -> None:
    checkpoint = f"{settings.lake}/_checkpoints/bronze.orders/1"
    write_text(f"{checkpoint}/offsets/0", "v2\n{}\n{}")
    write_text(f"{checkpoint}/commits/0", "v2\n{}")


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (newer_database, ControlSchemaNewerError),
        (newer_checkpoint, CheckpointFormatError),
        (lambda settings: publish(settings, "", **{MARK: FORMAT + 1}), WatermarkNewerError),
    ],
)
def test_what_a_newer_release_wrote_is_refused_before_anything_changes(
    settings, make, error
) -> None:
    make(settings)
    before = files(settings)
    with pytest.raises(error) as refusal:
        upgrade(settings)
    assert "99" in str(refusal.value.found) or "2" in str(refusal.value.found)
    assert files(settings) == before


def test_it_is_refused_while_the_streams_run(settings) -> None:
    with sole_application(settings), pytest.raises(StreamsAlreadyRunningError):
        upgrade(settings)
    upgrade(settings)
