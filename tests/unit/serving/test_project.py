"""The manifest that a command works with is that of the files and the settings of now."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_jobs.graph.manifest import Manifest
from spark_jobs.serving.project import applied_manifest, current_manifest
from spark_jobs.settings import Settings, load_settings

SOURCE = """\
description: Accounts of a bank.
format: debezium
topic: shop.public.accounts
table: public.accounts
keys: [id]
columns:
  id: {type: BIGINT, required: true}
  balance: DECIMAL(14,2)
"""
SILVER = """\
/* silver
description: Accounts of a bank.
*/
SELECT s.id, s.balance FROM bronze.accounts AS s
"""
GOLD = """\
/* gold
description: How many accounts have much.
owner: tests
refresh: micro-batch
every: 10 minutes
*/
SELECT COUNT(*) AS n FROM silver.accounts AS a WHERE a.balance > @least
"""
FILES = {
    "sources/accounts.yml": SOURCE,
    "sql/silver/accounts.sql": SILVER,
    "sql/gold/rich.sql": GOLD,
    "tidemark.yml": "variables: {least: 5}\n",
    "profiles/small.yml": "variables: {least: 7}\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose files are older than any manifest."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for path in (tmp_path, *tmp_path.rglob("*")):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    return tmp_path


def least(manifest: Manifest) -> str:
    return manifest.gold["rich"].sql.strip().rpartition(" ")[2]


def written(settings: Settings) -> str:
    """What the running parts of the stack read."""
    return least(Manifest.read(settings.manifest_file))


def test_a_schema_outside_the_usual_folder_is_compiled_again_when_it_changes(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Records of the new schema would go to quarantine after the streams have started."""
    elsewhere = tmp_path_factory.mktemp("registry") / "refund.avsc"
    inside = project / "contracts/payment.avsc"
    inside.parent.mkdir()
    (project / "sources/payments.yml").write_text(
        "format: avro\ntopic: payments\nevent_id: id\ncolumns: {id: STRING}\n"
        f"schemas: [contracts/payment.avsc, {elsewhere}]\n"
    )

    def save(path: Path, fields: str, at: int) -> None:
        named = ", ".join(f'{{"name": "{one}", "type": "string"}}' for one in fields.split())
        text = f'{{"type": "record", "name": "{path.stem}", "fields": [{named}]}}'
        path.write_text(text)
        os.utime(path, (at, at))

    def compiled_fields() -> list[int]:
        found = current_manifest(load_settings(project)).sources["payments"].schemas
        return [one.text.count('"name"') - 1 for one in found]

    save(inside, "id", 1_000_000_000)
    save(elsewhere, "id", 1_000_000_000)
    assert compiled_fields() == [1, 1]
    settings = load_settings(project)
    before = settings.manifest_file.stat().st_mtime_ns
    assert compiled_fields() == [1, 1]
    assert settings.manifest_file.stat().st_mtime_ns == before
    save(inside, "id amount", 1_000_000_001)
    assert compiled_fields() == [2, 1]
    save(elsewhere, "id amount", 1_000_000_001)
    assert compiled_fields() == [2, 2]
    # It may have been saved while it was read.
    save(elsewhere, "id", time.time_ns() // 1_000_000_000 + 5)
    assert compiled_fields() == [2, 1]
    assert Manifest.read(settings.manifest_file).compiled_from is None


def test_changed_columns_of_an_external_table_are_compiled_again(
    project: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table of another writer; while it is away, what was compiled stays."""
    place = tmp_path_factory.mktemp("external") / "rates"
    write_deltalake(place, pa.table({"id": ["a"]}))
    (project / "sources/rates.yml").write_text(f"format: delta\nlocation: {place}\n")
    settings = load_settings(project)
    first = current_manifest(settings)
    assert [one.name for one in first.sources["rates"].columns] == ["id"]
    # Applied, so that the file is not written again.
    first.model_copy(update={"deployment": "d1"}).write(settings.manifest_file)

    more = pa.table({"id": ["a"], "rate": [1]})
    write_deltalake(place, more, mode="overwrite", schema_mode="overwrite")
    changed = current_manifest(settings)
    assert [one.name for one in changed.sources["rates"].columns] == ["id", "rate"]

    changed.write(settings.manifest_file)
    place.rename(place.with_name("away"))
    monkeypatch.setattr("spark_jobs.storage.compiled.read_project", lambda *_, **__: 1 / 0)
    assert current_manifest(settings) == changed


def test_a_variable_for_one_command_is_that_of_this_command_only(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load_settings(project)
    assert least(current_manifest(settings)) == "5"
    with monkeypatch.context() as once:
        once.setenv("TIDEMARK_VARIABLES", '{"least": 9}')
        assert least(current_manifest(load_settings(project))) == "9"
        assert written(settings) == "5"
        # Not either if the files were changed since.
        os.utime(project / "sql/gold/rich.sql")
        assert least(applied_manifest(load_settings(project))) == "9"
        assert written(settings) == "5"
    assert least(current_manifest(settings)) == written(settings) == "5"


def test_a_changed_profile_changes_what_is_compiled(project: Path) -> None:
    small = load_settings(project, profile="small")
    assert least(current_manifest(small)) == "7"
    assert least(current_manifest(load_settings(project))) == "5"
    (project / "profiles/small.yml").write_text("variables: {least: 8}\n")
    small = load_settings(project, profile="small")
    assert least(current_manifest(small)) == written(small) == "8"


def test_an_unchanged_project_is_not_compiled_again(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load_settings(project)
    before = current_manifest(settings)
    monkeypatch.setattr("spark_jobs.storage.compiled.read_project", lambda *_, **__: 1 / 0)
    assert current_manifest(load_settings(project)) == before


def test_variables_do_not_change_what_was_applied(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load_settings(project)
    found = current_manifest(settings).model_copy(update={"deployment": "d1"})
    found.write(settings.manifest_file)
    monkeypatch.setenv("TIDEMARK_VARIABLES", '{"least": 9}')
    other = load_settings(project)
    assert least(applied_manifest(other)) == "5"
    assert least(current_manifest(other)) == "9"
    assert written(settings) == "5"
