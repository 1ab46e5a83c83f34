"""Redis: the distribution's server with its own files, on loopback, with a password."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

from spark_jobs.access.secrets import read_secret, secret_path
from spark_jobs.settings import Settings
from spark_jobs.stack.errors import ProgramMissingError
from spark_jobs.stack.parts import Part
from spark_jobs.stack.ports import LOOPBACK
from spark_jobs.stack.secrets import ensure_secret, write_secret

PROGRAM = "redis-server"
PASSWORD = "redis"  # noqa: S105 - the name of the secret
REMEDY = "Install it with `apt-get install redis-server`."
# Every write is appended to a file that is synced each second; nothing is evicted.
SERVER_SETTINGS = """\
bind {loopback}
port {port}
protected-mode yes
daemonize no
dir "{directory}"
appendonly yes
appendfsync everysec
save ""
maxmemory-policy noeviction
requirepass {password}
"""


def redis_part(settings: Settings) -> Part:
    """The server as a part of the stack."""
    return Part(
        name="redis",
        command=(PROGRAM, str(configuration(settings))),
        ports={"ports.redis": settings.ports.redis},
        prepare=partial(prepare_server, settings),
        probe=partial(probe_server, settings),
    )


def configuration(settings: Settings) -> Path:
    """The server's configuration, which holds its password."""
    return secret_path(settings, "redis.conf")


def check_redis() -> None:
    """Check that the server's program is installed.

    Raises:
        ProgramMissingError: it is not.
    """
    if shutil.which(PROGRAM) is None:
        raise ProgramMissingError(PROGRAM, "not found", remedy=REMEDY)


def prepare_server(settings: Settings) -> None:
    """Write the configuration, readable by its owner only, and create the data directory."""
    directory = settings.state / "redis"
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    password = ensure_secret(settings, PASSWORD)
    write_secret(
        settings,
        configuration(settings).name,
        SERVER_SETTINGS.format(
            loopback=LOOPBACK,
            port=settings.ports.redis,
            directory=directory,
            password=password,
        ),
    )


def url(settings: Settings) -> str:
    """The local server's address; contains the password, so do not log it."""
    return f"redis://:{read_secret(settings, PASSWORD)}@{LOOPBACK}:{settings.ports.redis}/0"


def probe_server(settings: Settings) -> str | None:
    """Why the server is not ready; None once it has loaded its files and answers."""
    import redis  # noqa: PLC0415 - needed by this part alone

    try:
        with redis.Redis.from_url(url(settings), socket_timeout=3, retry=None) as client:
            client.ping()
    except redis.RedisError as error:
        return str(error)
    return None
