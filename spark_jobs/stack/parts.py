"""Parts of the stack: supervised processes, with probes of their health."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

# Long enough for a busy machine; a part that exits is noticed immediately.
READY_SECONDS = 240


def numbered(kind: str, number: int) -> str:
    """The name of the first, second, ... part of a kind.

    >>> numbered("kafka", 1), numbered("kafka", 2)
    ('kafka', 'kafka-2')
    """
    return kind if number == 1 else f"{kind}-{number}"


def nothing() -> None:
    """Do nothing; the default of a part's hooks."""


@dataclass(frozen=True)
class Part:
    """One supervised process.

    Attributes:
        name: its name for users and the supervisor.
        command: program and arguments; never holds a secret.
        probe: returns why the part is not ready, or None if it is. It must be quick, and must
            not raise if the part is down.
        alive: returns why the process must be restarted, or None; by default the same as
            ``probe``. A part that waits for another system is alive but not ready.
        serves: returns why the steps that need it must wait, or None; by default the same as
            ``probe``. One of them may fix what keeps it from being ready.
        needs: steps that must be complete before this one starts.
        environment: variables in addition to those that every part gets.
        variables: a JSON file with secret variables, read at each start.
        user: the account it runs as; None for the account that starts the stack.
        ports: the port it listens on by the setting that names it; the first one is its address.
        prepare: writes its files, before the process starts.
        finish: runs once the part is ready, at every start of the stack; must be repeatable.
        stop_signal: the signal for a clean shutdown.
        stop_seconds: time for the shutdown before the process is killed.
        ready_seconds: time until the part must be ready.
    """

    name: str
    command: tuple[str, ...]
    probe: Callable[[], str | None]
    alive: Callable[[], str | None] | None = None
    serves: Callable[[], str | None] | None = None
    needs: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    variables: Path | None = None
    user: str | None = None
    ports: Mapping[str, int] = field(default_factory=dict)
    prepare: Callable[[], None] = nothing
    finish: Callable[[], None] = nothing
    stop_signal: str = "TERM"
    stop_seconds: int = 15
    ready_seconds: float = READY_SECONDS


@dataclass(frozen=True)
class Task:
    """A step of the start without a process that keeps running.

    Attributes:
        run: does the work and may raise a ``LakehouseError``; must be repeatable.
    """

    name: str
    run: Callable[[], None]
    needs: tuple[str, ...] = ()


Step = Part | Task
