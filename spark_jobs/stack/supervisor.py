"""Supervisord: its configuration, its start, and control over its Unix socket."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import time
import xmlrpc.client
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from http.client import HTTPException
from pathlib import Path
from typing import Any

from supervisor.xmlrpc import Faults, SupervisorTransport

from spark_jobs.settings import Settings
from spark_jobs.stack import launch
from spark_jobs.stack.errors import PartFailedError
from spark_jobs.stack.parts import Part
from spark_jobs.stack.session import SessionRecord

# The kernel's limit for the path of a Unix socket, including the terminating zero byte.
SOCKET_PATH_BYTES = 108
START_SECONDS = 20
DO_NOT_WAIT = False
LOG_BYTES = "10MB"
LOG_BACKUPS = 3


@dataclass(frozen=True)
class ProcessState:
    """A part's process as supervisord sees it."""

    name: str
    state: str
    pid: int
    started_at: int
    now: int
    problem: str


class Supervisor:
    """The supervisord that keeps the parts of one state directory running."""

    def __init__(self, settings: Settings) -> None:
        self.directory = settings.state / "supervisor"
        self.logs = settings.state / "logs"
        self.socket = socket_path(settings.state)
        self.record = self.directory / "session.json"
        self.config = self.directory / "supervisord.conf"
        self.log = self.logs / "supervisord.log"

    def part_log(self, name: str) -> Path:
        """The log file of a part."""
        return self.logs / f"{name}.log"

    def answers(self) -> bool:
        """Whether this state directory's supervisord is alive and can be controlled."""
        try:
            with self.remote() as remote:
                pid = int(remote.getPID())
        except (PartFailedError, xmlrpc.client.Error):
            return False
        record = SessionRecord.read(self.record)
        if record is None:
            # The process that started it was killed before it could record it.
            SessionRecord.of(pid).write(self.record)
            return True
        return record.pid == pid and record.leader_alive()

    def start(self, parts: Iterable[Part], environment: Mapping[str, str]) -> None:
        """Start supervisord with all parts configured and none started.

        Args:
            parts: all parts.
            environment: variables of every part.

        Raises:
            PartFailedError: supervisord ended, or does not answer.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        self.logs.mkdir(parents=True, exist_ok=True)
        self.socket.unlink(missing_ok=True)
        if self.log.exists():
            self.log.replace(self.log.with_suffix(".log.1"))
        self.config.touch(mode=0o600)
        self.config.write_text(render_config(self, parts, environment))
        # It daemonizes: it forks into its own session, and its first process exits.
        answer = subprocess.run(
            [sys.executable, "-m", "supervisor.supervisord", "-c", str(self.config)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=dict(environment),
            cwd=self.directory,
            check=False,
        )
        deadline = time.monotonic() + START_SECONDS
        while not self.answers():
            if answer.returncode != 0 or time.monotonic() > deadline:
                tail = answer.stdout[-2000:]
                raise PartFailedError("supervisor", "did not start", log=self.log, tail=tail)
            time.sleep(0.05)

    def runs_with(self, parts: Iterable[Part], environment: Mapping[str, str]) -> bool:
        """Whether the running supervisord was started with the same parts and settings."""
        try:
            return self.config.read_text() == render_config(self, parts, environment)
        except FileNotFoundError:
            return False

    def differences(self, parts: Iterable[Part], environment: Mapping[str, str]) -> list[str]:
        """What differs from the start of the running supervisord: settings, or else parts."""
        try:
            running = self.config.read_text().splitlines()
        except FileNotFoundError:
            return []
        wanted = render_config(self, parts, environment).splitlines()
        old, new = (dict(_settings_in(lines)) for lines in (running, wanted))
        keys = sorted(old.keys() | new.keys())
        # Only keys: values may be secrets, and the files contain them.
        named = [key for key in keys if old.get(key) != new.get(key)]
        return named or sorted(_programs_that_differ(running, wanted))

    def start_part(self, name: str) -> None:
        """Request the start of a part unless it is running."""
        with self.remote() as remote, ignoring(Faults.ALREADY_STARTED):
            remote.startProcess(name, DO_NOT_WAIT)

    def stop_part(self, name: str) -> None:
        """Request the stop of a part unless it is stopped."""
        with self.remote() as remote, ignoring(Faults.NOT_RUNNING):
            remote.stopProcess(name, DO_NOT_WAIT)

    def kill_part(self, name: str) -> None:
        """Kill the process of a part if it runs; supervisord starts it again."""
        with self.remote() as remote, ignoring(Faults.NOT_RUNNING):
            remote.signalProcess(name, "KILL")

    def shutdown(self) -> None:
        """Request supervisord to stop, with all its processes."""
        with self.remote() as remote:
            remote.shutdown()

    def states(self) -> dict[str, ProcessState]:
        """Every part's process, by name."""
        with self.remote() as remote:
            return {
                one["name"]: ProcessState(
                    name=one["name"],
                    state=one["statename"],
                    pid=one["pid"],
                    started_at=one["start"],
                    now=one["now"],
                    problem=one["spawnerr"],
                )
                for one in remote.getAllProcessInfo()
            }

    def starts(self) -> Counter[str]:
        """How often each part's process was started since supervisord started."""
        try:
            lines = self.log.read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return Counter()
        return Counter(line.split("'")[1] for line in lines if " spawned: '" in line)

    @contextmanager
    def remote(self) -> Iterator[Any]:
        """Supervisord's RPC interface; each use opens a connection, which is not thread-safe.

        Raises:
            PartFailedError: supervisord has ended.
        """
        transport = SupervisorTransport(None, None, f"unix://{self.socket}")
        proxy = xmlrpc.client.ServerProxy("http://127.0.0.1", transport=transport)
        try:
            yield proxy.supervisor
        except (OSError, HTTPException, xmlrpc.client.ProtocolError) as error:
            raise PartFailedError("supervisor", "ended", log=self.log) from error
        finally:
            transport.close()


@contextmanager
def ignoring(fault: int) -> Iterator[None]:
    """Ignore one of supervisord's faults."""
    try:
        yield
    except xmlrpc.client.Fault as error:
        if error.faultCode != fault:
            raise


def socket_path(state: Path) -> Path:
    """The control socket: in the state directory, or elsewhere if that path is too long."""
    inside = state / "supervisor" / "control.sock"
    # Supervisord first binds a temporary path with its process id appended.
    if len(os.fsencode(inside)) + 12 < SOCKET_PATH_BYTES:
        return inside
    digest = sha256(os.fsencode(state)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"tidemark-{os.getuid()}-{digest}.sock"


def render_config(
    supervisor: Supervisor, parts: Iterable[Part], environment: Mapping[str, str]
) -> str:
    """Supervisord's configuration file; its comments contain the settings of the start."""
    lines = [
        *(
            f"; {key}={_on_one_line(value)}"
            for key, value in environment.items()
            if key.startswith("TIDEMARK_")
        ),
        "[unix_http_server]",
        f"file={escaped(supervisor.socket)}",
        "chmod=0600",
        "",
        "[supervisord]",
        "nodaemon=false",
        f"logfile={escaped(supervisor.log)}",
        f"logfile_maxbytes={LOG_BYTES}",
        f"logfile_backups={LOG_BACKUPS}",
        f"pidfile={escaped(supervisor.directory / 'supervisord.pid')}",
        "umask=077",
        *(["user=root"] if os.geteuid() == 0 else []),
        "",
        "[rpcinterface:supervisor]",
        "supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface",
    ]
    for part in parts:
        lines += ["", *program_lines(part, supervisor.part_log(part.name))]
    return "\n".join(lines) + "\n"


def _on_one_line(value: str) -> str:
    """A value for a comment, which ends with its line."""
    return value.replace("\r", "\\r").replace("\n", "\\n")


def _settings_in(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The settings in a configuration's comments, by dotted key."""
    for line in lines:
        if line.startswith("; TIDEMARK_"):
            name, _, value = line.removeprefix("; TIDEMARK_").partition("=")
            yield name.replace("__", ".").lower(), value


def _programs_that_differ(running: Iterable[str], wanted: Iterable[str]) -> set[str]:
    old, new = _programs(running), _programs(wanted)
    return {f"part {name}" for name in old.keys() | new.keys() if old.get(name) != new.get(name)}


def _programs(lines: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    section = ""
    for line in lines:
        if line.startswith("["):
            section = line.strip("[]").removeprefix("program:")
        found.setdefault(section, []).append(line)
    return found


def program_lines(part: Part, log: Path) -> list[str]:
    """The section of one part: restarted whenever it exits, stopped with its process group."""
    variables = ",".join(f'{key}="{escaped(value)}"' for key, value in part.environment.items())
    return [
        f"[program:{part.name}]",
        f"command={escaped(shlex.join(launched(part, log.parent.parent / 'run')))}",
        *([f"environment={variables}"] if variables else []),
        *([f"user={part.user}"] if part.user else []),
        "autostart=false",
        "autorestart=true",
        # A part that exits sooner is restarted after a pause that grows by a second each time.
        "startsecs=5",
        "startretries=1000",
        f"stopsignal={part.stop_signal}",
        f"stopwaitsecs={part.stop_seconds}",
        "killasgroup=true",
        "redirect_stderr=true",
        f"stdout_logfile={escaped(log)}",
        f"stdout_logfile_maxbytes={LOG_BYTES}",
        f"stdout_logfile_backups={LOG_BACKUPS}",
    ]


def launched(part: Part, run: Path) -> tuple[str, ...]:
    """The part's command, run by the launcher that stops processes of an earlier run.

    Another account cannot read the launcher; the only part with its own account does not need it.
    """
    if part.user:
        return part.command
    record = run / f"{part.name}.pid"
    variables = str(part.variables or "")
    return (sys.executable, "-I", "-S", launch.__file__, str(record), variables, *part.command)


def escaped(value: object) -> str:
    """A value with ``%`` escaped, so that supervisord does not expand it."""
    return str(value).replace("%", "%%")
