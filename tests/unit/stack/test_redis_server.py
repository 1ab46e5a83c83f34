"""The stack's Redis: behind a password that only its owner can read."""

from __future__ import annotations

import socket
import stat
import subprocess
import time
from pathlib import Path

import pytest
import redis

from spark_jobs.settings import load_settings
from spark_jobs.stack.errors import ProgramMissingError
from spark_jobs.stack.redis_server import check_redis, configuration, redis_part, url
from spark_jobs.stack.sink_addresses import sink_addresses


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def test_redis_requires_the_password_and_persists_values(tmp_path: Path) -> None:
    settings = load_settings(tmp_path, state_dir=tmp_path / "a state", ports={"redis": free_port()})
    part = redis_part(settings)
    assert sink_addresses(settings).redis == ""
    for value in ("first", "second"):
        part.prepare()
        assert part.probe() is not None
        with subprocess.Popen(part.command, stdout=subprocess.DEVNULL) as server:
            try:
                deadline = time.monotonic() + 20
                while part.probe() is not None:
                    assert time.monotonic() < deadline
                    time.sleep(0.05)
                with redis.Redis.from_url(sink_addresses(settings).redis) as client:
                    assert client.get("a") == (None if value == "first" else b"first")
                    client.set("a", value)
                with (
                    redis.Redis(port=settings.ports.redis) as stranger,
                    pytest.raises(redis.AuthenticationError),
                ):
                    stranger.get("a")
            finally:
                server.terminate()
    assert stat.S_IMODE(configuration(settings).stat().st_mode) == 0o600
    password = url(settings).split(":")[2].split("@")[0]
    assert not any(password in word for word in part.command)


def test_a_missing_program_is_reported_with_its_installation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(ProgramMissingError) as caught:
        check_redis()
    assert "apt-get install redis-server" in str(caught.value.hint)
