"""The local object store: in the stack on demand, and its key in files of the owner alone."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from spark_jobs.access.secrets import read_secret
from spark_jobs.errors import ProblemsError
from spark_jobs.settings import Settings, load_settings
from spark_jobs.stack import launch, object_store
from spark_jobs.stack.catalog import all_steps, with_needs
from spark_jobs.stack.errors import AttributesUnsupportedError, ObjectStoreJarsMissingError
from spark_jobs.stack.parts import Part
from spark_jobs.stack.preflight import check_machine

VARIABLES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL")


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test exports ends with it."""
    for name in (*VARIABLES, "AWS_REGION", "AWS_ALLOW_HTTP"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


def settings(tmp_path: Path, **change: object) -> Settings:
    local = {"object_store": True, "free_memory_gib": 0, "free_disk_gib": 0}
    return load_settings(tmp_path, state_dir=tmp_path / "state", local=local, **change)


def parts(chosen: Settings) -> dict[str, Part]:
    return {step.name: step for step in all_steps(chosen) if isinstance(step, Part)}


def test_the_lake_is_in_the_store_that_was_asked_for(tmp_path: Path) -> None:
    assert settings(tmp_path).lake == "s3a://tidemark/lake"
    assert settings(tmp_path, lake_root="s3a://mine/x/").lake == "s3a://mine/x"
    assert load_settings(tmp_path, state_dir=tmp_path).lake == str(tmp_path / "lake")


def test_it_starts_before_what_reads_the_lake_and_not_unasked(tmp_path: Path) -> None:
    assert object_store.NAME not in parts(load_settings(tmp_path))
    chosen = settings(tmp_path)
    assert object_store.NAME in parts(chosen)
    for reader in ("streams", "spark-connect", "endpoint"):
        steps = with_needs(all_steps(chosen), [reader])
        assert object_store.NAME in {step.name for step in steps}


def test_its_key_is_in_no_command_and_in_no_file_that_others_may_read(tmp_path: Path) -> None:
    chosen = settings(tmp_path, ports={"object_store": 4711})
    part = parts(chosen)[object_store.NAME]
    part.prepare()
    key = read_secret(chosen, object_store.KEY)
    assert not any(key in word for one in parts(chosen).values() for word in one.command)
    for path in (object_store.configuration(chosen), chosen.store_variables):
        assert key in path.read_text()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    properties = dict(
        line.split("=", 1) for line in object_store.configuration(chosen).read_text().splitlines()
    )
    assert properties["s3proxy.endpoint"] == "http://127.0.0.1:4711"
    assert properties["s3proxy.authorization"] == "aws-v4"
    assert Path(properties["jclouds.filesystem.basedir"], "tidemark").is_dir()

    part.prepare()
    assert read_secret(chosen, object_store.KEY) == key


def test_java_reads_the_directory_of_any_project(tmp_path: Path) -> None:
    """Java reads Latin-1 and escapes: it would look for its bucket in another directory."""
    home = tmp_path / "m\u00fcller"
    home.mkdir()
    chosen = settings(home)
    parts(chosen)[object_store.NAME].prepare()
    lines = object_store.configuration(chosen).read_bytes().decode("ascii").splitlines()
    (given,) = [one for one in lines if one.startswith("jclouds.filesystem.basedir=")]
    assert given.endswith(r"/m\u00fcller/state/object-store/data")


def test_loading_the_settings_sets_the_store_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = settings(tmp_path)
    assert "AWS_ENDPOINT_URL" not in os.environ
    parts(chosen)[object_store.NAME].prepare()
    for name in VARIABLES:
        monkeypatch.setenv(name, "another account")
    settings(tmp_path)
    assert os.environ["AWS_ENDPOINT_URL"] == chosen.store_endpoint
    assert os.environ["AWS_SECRET_ACCESS_KEY"] == read_secret(chosen, object_store.KEY)


def test_a_server_in_java_is_given_the_key_when_it_starts(tmp_path: Path) -> None:
    chosen = settings(tmp_path)
    local = {"object_store": True, "spark_workers": 1}
    with_workers = load_settings(tmp_path, state_dir=tmp_path / "state", local=local)
    # An executor inherits what its worker has.
    for name in ("spark-connect", "spark-worker"):
        assert parts(with_workers)[name].variables == chosen.store_variables
    connect = parts(chosen)["spark-connect"]
    assert launch.secret_variables(str(connect.variables)) == {}
    parts(chosen)[object_store.NAME].prepare()
    program = [sys.executable, "-c", "import os; print(os.environ['AWS_SECRET_ACCESS_KEY'])"]
    record = str(tmp_path / "part.pid")
    answer = subprocess.run(
        [sys.executable, "-I", "-S", launch.__file__, record, str(connect.variables), *program],
        env={},
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.strip() == read_secret(chosen, object_store.KEY)
    assert json.loads(chosen.store_variables.read_text()).keys() >= {*VARIABLES}


def test_missing_jars_are_named_with_the_remedy(tmp_path: Path) -> None:
    chosen = settings(tmp_path, s3proxy_jars=tmp_path / "none")
    with pytest.raises(ProblemsError) as caught:
        check_machine(chosen, [object_store.NAME])
    [missing] = [
        one for one in caught.value.problems if isinstance(one, ObjectStoreJarsMissingError)
    ]
    assert missing.directory == tmp_path / "none"
    assert "make setup-s3" in str(missing.hint)


def test_a_file_system_that_would_lose_metadata_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("os.setxattr", unsupported)
    with pytest.raises(AttributesUnsupportedError) as caught:
        parts(settings(tmp_path))[object_store.NAME].prepare()
    assert caught.value.directory == tmp_path / "state/object-store/data/tidemark"
