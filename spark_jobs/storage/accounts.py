"""Starts the JVM of a Spark session as another account of the machine.

Its files are in a directory of its own; settings are passed over the connection to it.
"""

from __future__ import annotations

import os
import pwd
import shutil
import struct
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from spark_jobs.settings import LOOPBACK
from spark_jobs.storage.errors import JvmNotStartedError
from spark_jobs.storage.java_compiler import SHIPPED
from spark_jobs.storage.rights import usual_rights

# Linux capabilities: change a file's owner, access files of other accounts, switch accounts.
_CHOWN, _DAC_OVERRIDE, _SETGID, _SETUID = 0, 1, 6, 7
_NEEDED = sum(1 << bit for bit in (_CHOWN, _DAC_OVERRIDE, _SETGID, _SETUID))
# Environment variables that the JVM inherits; the others may hold secrets.
_INHERITED = ("JAVA_HOME", "LANG", "LC_ALL", "PATH", "TZ")
_OWN = "own"
_CONNECTION = "connection"
_START_SECONDS = 120
_END_SECONDS = 20


@dataclass(frozen=True)
class Account:
    """An account of the machine, with its primary group only."""

    name: str
    uid: int
    gid: int

    @classmethod
    def named(cls, name: str) -> Account:
        """The account with this name.

        Raises:
            KeyError: there is no such account.
        """
        found = pwd.getpwnam(name)
        return cls(name, found.pw_uid, found.pw_gid)


def may_change_accounts(status: Path = Path("/proc/self/status")) -> bool:
    """Whether this process may start processes as another account; root in a container may not."""
    try:
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["CapEff"], 16) & _NEEDED == _NEEDED
    except (OSError, KeyError, ValueError):
        # Not Linux.
        return os.geteuid() == 0


def own_folder(files: Path) -> Path:
    """The directory that only the account's process writes to."""
    return files / _OWN


def make_folders(files: Path, account: Account) -> None:
    """Create a directory, and in it the account's own one, empty.

    Nothing is written to the account's directory after its owner changed: the account could have
    put a symbolic link there.
    """
    with usual_rights():
        files.mkdir(parents=True, exist_ok=True)
    files.chmod(0o711)
    own = own_folder(files)
    shutil.rmtree(own, ignore_errors=True)
    own.mkdir(mode=0o700)
    for name in ("local", "tmp"):
        (own / name).mkdir(mode=0o700)
        os.chown(own / name, account.uid, account.gid)
    os.chown(own, account.uid, account.gid)


@contextmanager
def jvm_of(account: Account, conf: Mapping[str, str], *, files: Path) -> Iterator[None]:
    """Start a JVM as the account; the next PySpark session of this process uses it.

    It ends with the context, or with this process.

    Args:
        account: the account to run as.
        conf: configuration of the session; every account can read it.
        files: directory that ``make_folders`` created.

    Raises:
        JvmNotStartedError: the JVM exited, or does not answer.
    """
    own, home = own_folder(files), SHIPPED.parent
    connection = own / _CONNECTION
    options = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    process = subprocess.Popen(
        # Ignore Ctrl-C in the JVM, as PySpark does: only this process handles it.
        [
            *("/bin/sh", "-c", 'trap "" INT; exec "$@"', "sh"),
            *(str(home / "bin/spark-submit"), *options, "pyspark-shell"),
        ],
        stdin=subprocess.PIPE,
        user=account.uid,
        group=account.gid,
        extra_groups=[],
        cwd=own,
        umask=0o077,
        env={
            **{name: os.environ[name] for name in _INHERITED if name in os.environ},
            "HOME": str(own),
            "LOGNAME": account.name,
            "USER": account.name,
            "TMPDIR": str(own / "tmp"),
            "SPARK_HOME": str(home),
            "SPARK_CONNECT_MODE": "0",
            "SPARK_LOCAL_IP": LOOPBACK,
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(connection),
        },
    )
    try:
        _await(connection, process, account)
        with connection.open("rb") as told:
            port, length = struct.unpack(">ii", told.read(8))
            secret = told.read(length).decode()
        given = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
        os.environ.update(given)
        try:
            yield
        finally:
            for name in given:
                os.environ.pop(name, None)
    finally:
        # The JVM exits when its standard input is closed.
        if process.stdin:
            process.stdin.close()
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await(connection: Path, process: subprocess.Popen[bytes], account: Account) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not connection.is_file():
        if process.poll() is not None or time.monotonic() > deadline:
            raise JvmNotStartedError(account.name, process.returncode)
        time.sleep(0.1)
