"""What the local object store gives to a caller without its key."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator

import httpx
import pytest
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import PyFileSystem

from spark_jobs.settings import BUCKET, Settings, load_settings
from spark_jobs.stack.environment import stack_environment
from spark_jobs.stack.object_store import directory, object_store_parts
from tests.cluster.attempts import GUESS
from tests.e2e import doors
from tests.e2e.running import free_ports

START_SECONDS = 120


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Those of a server over files that every account may read, as an earlier release made them."""
    folder = tmp_path_factory.mktemp("store")
    made = load_settings(
        folder, state_dir=folder / "state", ports=free_ports(), local={"object_store": True}
    )
    [part] = object_store_parts(made)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "ENDPOINT_URL", "REGION", "ALLOW_HTTP"):
            patch.setenv(f"AWS_{name}", "")
        part.prepare()
        bucket = directory(made) / "data" / BUCKET
        (bucket / "held").write_text("a secret")
        (bucket / "held").chmod(0o644)
        bucket.chmod(0o755)
        with subprocess.Popen(part.command, env=stack_environment(made)) as server:
            try:
                deadline = time.monotonic() + START_SECONDS
                while (problem := part.probe()) is not None:
                    assert server.poll() is None
                    assert time.monotonic() < deadline, problem
                    time.sleep(0.2)
                yield made
            finally:
                server.kill()


def test_nobody_lists_reads_or_writes_without_the_key(settings: Settings) -> None:
    assert doors.object_store(settings) == "403"
    assert doors.object_store(settings, Authorization=GUESS) == "403"
    held = f"{settings.store_endpoint}/{BUCKET}/held"
    with httpx.Client(trust_env=False) as client:
        for answer in (client.get(held), client.head(held), client.put(held, content=b"mine")):
            assert answer.status_code == httpx.codes.FORBIDDEN
            assert "a secret" not in answer.text
    kept = directory(settings) / "data" / BUCKET / "held"
    assert kept.read_text() == "a secret"


def test_the_key_opens_it(settings: Settings) -> None:
    assert settings.store_variables.exists()
    files = PyFileSystem(DeltaStorageHandler(f"s3a://{BUCKET}/"))
    with files.open_input_file("held") as file:
        assert file.read() == b"a secret"
