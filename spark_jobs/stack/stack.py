"""The local stack: start, stop and status.

A stack belongs to one state directory. It changes nothing outside it, and stops only processes that
are recorded there.
"""

from __future__ import annotations

import fcntl
import getpass
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property

from spark_jobs.access.secrets import secret_path
from spark_jobs.settings import Settings
from spark_jobs.stack.catalog import (
    MANIFEST_PARTS,
    ON_DEMAND,
    all_steps,
    check_part_names,
    with_needs,
)
from spark_jobs.stack.environment import stack_environment
from spark_jobs.stack.errors import PartFailedError, RestartNeededError, SettingsChangedError
from spark_jobs.stack.parts import Part, Step
from spark_jobs.stack.placeholder import ensure_placeholder
from spark_jobs.stack.ports import check_ports
from spark_jobs.stack.postgres_server import data_directory
from spark_jobs.stack.preflight import check_machine
from spark_jobs.stack.secrets import AIRFLOW_USERS
from spark_jobs.stack.session import SessionRecord, end
from spark_jobs.stack.startup import Report, run_steps
from spark_jobs.stack.status import PartStatus, part_statuses
from spark_jobs.stack.streams import NAME, control_needs
from spark_jobs.stack.supervisor import Supervisor
from spark_jobs.state.deployments import OPEN, Deployment, DeploymentStatus
from spark_jobs.state.errors import ControlUnreachableError
from spark_jobs.state.stopped import forget_stopped, note_stopped
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import utc_now
from spark_jobs.storage.conf import connect_url_file
from spark_jobs.storage.in_force import copy_in_force, deployment_of, manifest_of, put_manifest
from spark_jobs.storage.lake import Lake
from spark_jobs.storage.rights import close_state, private_files, restrict

POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Started:
    """The result of a start.

    Attributes:
        already_up: all chosen parts were already running and ready.
        left_over: processes of a stack that had crashed, which were stopped first.
        users_made: Airflow's users are new, so their passwords were never shown.
        seconds: the total time.
    """

    already_up: bool
    left_over: tuple[int, ...] = ()
    users_made: bool = False
    seconds: float = 0


@dataclass(frozen=True)
class Stack:
    """The parts of one state directory.

    Attributes:
        settings: whose state directory, ports and jars it uses.
    """

    settings: Settings
    supervisor: Supervisor = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "supervisor", Supervisor(self.settings))

    @cached_property
    def steps(self) -> list[Step]:
        """Every step of a full start."""
        return all_steps(self.settings)

    @property
    def parts(self) -> list[Part]:
        """Every part, in the order of a start."""
        return [step for step in self.steps if isinstance(step, Part)]

    @private_files()
    def up(self, report: Report, *, parts: Sequence[str] = (), restart: bool = False) -> Started:
        """Start the chosen parts, all by default, and wait until each is ready.

        Running parts are not restarted. The other steps run each time, for instance the one that
        registers the connector; each changes only what differs. Processes that a crashed stack left
        behind are stopped first.

        Args:
            report: receives the progress of each step.
            parts: their names.
            restart: restart parts that run with other settings.

        Raises:
            RestartNeededError: it runs with other settings, and ``restart`` is not set.
            LakehouseError: a requirement is missing, ports are taken, or a part does not start.
        """
        began = time.monotonic()
        steps = with_needs(self.steps, check_part_names(self.steps, parts))
        names = [step.name for step in steps if isinstance(step, Part)]
        check_machine(self.settings, names, running=self.supervisor.answers())
        close_state(self.settings.state)
        restrict(Lake(self.settings.lake), readable=self.settings.security.readable)
        wanted = bool(MANIFEST_PARTS & set(names))
        written = not wanted or write_manifest(self.settings, later=True)
        with self.only_one():
            if NAME in names:
                forget_stopped(self.settings.state)
            environment = stack_environment(self.settings)
            left_over: list[int] = []
            ready = False
            if not self.supervisor.answers():
                left_over = self.end_left_over()
            elif not self.supervisor.runs_with(self.parts, environment):
                # The settings changed since the start, and every process has the old ones.
                if not restart:
                    raise RestartNeededError(self.supervisor.differences(self.parts, environment))
                self.stop_all()
            else:
                ready = all(status.ready for status in self.status(names))
            self.check_ports(names)
            users_before = secret_path(self.settings, AIRFLOW_USERS).exists()
            if not self.supervisor.answers():
                self.supervisor.start(self.parts, environment)
            if not written:
                database = with_needs(self.steps, control_needs(self.settings))
                run_steps(database, self.supervisor, report)
                write_manifest(self.settings)
            run_steps(steps, self.supervisor, report)
            if NAME in names:
                note_start(self.settings)
            return Started(
                already_up=ready,
                left_over=tuple(left_over),
                users_made=not users_before and secret_path(self.settings, AIRFLOW_USERS).exists(),
                seconds=time.monotonic() - began,
            )

    def restart(self, report: Report, *, parts: Sequence[str]) -> Started:
        """Restart the named parts, and start what they need; other parts keep running.

        Raises:
            UnknownPartError: no part has such a name.
            SettingsChangedError: the running parts were started with other settings.
            LakehouseError: see ``up``.
        """
        names = check_part_names(self.steps, parts)
        if self.supervisor.answers():
            with self.only_one():
                self.stop_parts(names)
        return self.up(report, parts=names)

    def stop_parts(self, names: Sequence[str]) -> None:
        """Stop some parts of a stack that is up, and wait until they have ended.

        Raises:
            SettingsChangedError: the running parts were started with other settings.
        """
        if not self.supervisor.runs_with(self.parts, stack_environment(self.settings)):
            raise SettingsChangedError
        for name in names:
            self.supervisor.stop_part(name)
        # Supervisord kills a part that does not stop in time.
        while any(self.supervisor.states()[name].pid for name in names):
            time.sleep(POLL_SECONDS)

    def down(self) -> bool:
        """Stop every part, dependents first, and make sure that no process is left.

        Returns:
            Whether anything ran.
        """
        if not self.settings.state.exists():
            return False
        with self.only_one():
            note_stopped(self.settings.state)
            return self.stop_all()

    def stop_all(self) -> bool:
        """Stop the parts in order, then all other processes; returns whether anything ran."""
        connect_url_file(self.settings).unlink(missing_ok=True)
        ran = self.supervisor.answers()
        if ran:
            # It may end meanwhile: the processes that it leaves are stopped below.
            with suppress(PartFailedError):
                self.stop_in_order()
                self.supervisor.shutdown()
            self.wait_for_supervisor()
        return bool(self.end_left_over()) or ran

    def status(self, names: Sequence[str] = ()) -> list[PartStatus]:
        """The status of parts; by default without parts on demand that were not started.

        Raises:
            UnknownPartError: there is no such part.
        """
        on_demand = () if names else self.started_on_demand()
        chosen = {*check_part_names(self.steps, names), *on_demand}
        return part_statuses([part for part in self.parts if part.name in chosen], self.supervisor)

    def started_on_demand(self) -> set[str]:
        """The parts that run, or should run, because they were started on demand."""
        if not self.supervisor.answers():
            return set()
        try:
            states = self.supervisor.states()
        except PartFailedError:
            # It ended since it answered.
            return set()
        return {name for name in ON_DEMAND & states.keys() if states[name].started_at}

    def check_ports(self, names: Sequence[str]) -> None:
        """Check that the chosen parts' ports are free or used by this stack.

        Raises:
            PortsTakenError: names every taken port at once.
        """
        ports = {
            setting: port
            for part in self.parts
            if part.name in names
            for setting, port in part.ports.items()
        }
        check_ports(ports, own_pids=self.pids())

    def pids(self) -> set[int]:
        """Every live process of this stack, the supervisor included."""
        record = SessionRecord.read(self.supervisor.record)
        return {process.pid for process in record.members()} if record else set()

    def end_left_over(self) -> list[int]:
        """Stop processes of this stack that its supervisor no longer controls."""
        record = SessionRecord.read(self.supervisor.record)
        ended = end(record) if record else []
        self.supervisor.record.unlink(missing_ok=True)
        self.supervisor.socket.unlink(missing_ok=True)
        connect_url_file(self.settings).unlink(missing_ok=True)
        return ended

    def stop_in_order(self) -> None:
        """Stop each part as soon as no running part needs it, directly or not."""
        needs = needs_by_part(self.steps)
        while True:
            states = self.supervisor.states()
            alive = {name for name, state in states.items() if state.pid}
            if not alive:
                return
            for name in alive:
                if states[name].state != "STOPPING" and not any(
                    name in needs.get(other, ()) for other in alive
                ):
                    self.supervisor.stop_part(name)
            time.sleep(POLL_SECONDS)

    def wait_for_supervisor(self, *, seconds: float = 20) -> None:
        """Wait until supervisord has ended, with a time limit."""
        record = SessionRecord.read(self.supervisor.record)
        deadline = time.monotonic() + seconds
        while record and record.leader_alive() and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)

    @contextmanager
    def only_one(self) -> Iterator[None]:
        """A lock: one start or stop of this state directory runs at a time."""
        with (self.settings.state / "stack.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def needs_by_part(steps: Sequence[Step]) -> dict[str, set[str]]:
    """Which steps each step needs, directly or through others, by name."""
    direct = {step.name: set(step.needs) for step in steps}

    def closure(name: str) -> set[str]:
        found: set[str] = set()
        for need in direct.get(name, ()):
            found |= {need} | closure(need)
        return found

    return {name: closure(name) for name in direct}


def write_manifest(settings: Settings, *, later: bool = False) -> bool:
    """Write the manifest, which every streaming and scheduled part reads.

    If there is a deployment, its definitions stay: `tidemark apply` applies files that changed
    since. If its file was lost, the control database has it. Only a first start compiles.

    Args:
        settings: whose file is written.
        later: write nothing if the control database starts with the stack and does not answer yet.

    Returns:
        whether the file is right now.

    Raises:
        ProblemsError: the declarations have problems.
    """
    # sqlglot is slow
    from spark_jobs.storage.compiled import compile_settings  # noqa: PLC0415

    # Streams and connector must use the same placeholder from the first change on.
    ensure_placeholder(settings)
    if deployment_of(settings.manifest_file) is not None:
        return True
    try:
        with ControlStore.open(settings.control_url) as store:
            applied = manifest_of(store.deployment_in_force())
    except ControlUnreachableError:
        # A cluster that was never made has no deployments.
        if later and control_needs(settings) and data_directory(settings).exists():
            return False
        applied = None
    if applied is None:
        compile_settings(settings)
    else:
        copy_in_force(settings, applied)
    return True


def note_start(settings: Settings) -> None:
    """Record what runs: the first start is the first deployment; later ones record the settings.

    What was applied stays in force, also if its file was lost or is older: an apply was killed.
    A deployment that another release left unfinished, or that was never in force, is continued by
    the next apply.
    """
    from spark_jobs.deploy.kept_settings import kept_settings  # noqa: PLC0415
    from spark_jobs.deploy.other_release import kept_tables  # noqa: PLC0415
    from spark_jobs.deploy.steps import left_by_start  # noqa: PLC0415
    from spark_jobs.graph.manifest import Manifest  # noqa: PLC0415

    with ControlStore.open(settings.control_url) as store:
        found = store.deployment_in_force()
        applied = manifest_of(found)
        if applied is not None:
            copy_in_force(settings, applied)
        manifest = Manifest.read(settings.manifest_file)
        if found is not None and manifest.deployment is not None:
            store.note_settings(found.deployment_id, kept_settings(settings))
            return
        newest = store.newest_deployment()
        number = newest.number + 1 if newest else 1
        open_steps = newest.open_steps if newest and newest.unfinished else ()
        left = left_by_start(open_steps, manifest)
        name = f"d{number}-{utc_now():%Y%m%dT%H%M%S}-start"
        manifest = manifest.model_copy(update={"deployment": name})
        store.begin_deployment(
            Deployment(
                deployment_id=name,
                number=number,
                status=DeploymentStatus.FAILED if left else DeploymentStatus.APPLIED,
                in_force=True,
                who=f"{getpass.getuser()}@{socket.gethostname()}",
                manifest=manifest.model_dump_json(),
                settings=kept_settings(settings),
                steps=dict.fromkeys(left, OPEN),
                kept=kept_tables(found, manifest, since=utc_now()) if found else {},
            )
        )
        put_manifest(settings, manifest)
