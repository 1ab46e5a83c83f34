"""What a part of the stack is: a supervised process, and how to tell that it serves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

# Long enough for a machine that is busy with other things; a part that ends is noticed at once.
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
        name: how users and the supervisor call it.
        command: program and arguments; never holds a secret.
        probe: says what the part still lacks, or None when it serves. It must be quick and
            must not raise because the part is down.
        alive: says why only a new process can help, or None; the same as ``probe`` where it is
            not given. What waits for another system serves nobody and is alive.
        needs: steps that must be complete before this one starts.
        environment: variables beside those that every part gets.
        variables: a file of more of them, as JSON, that are secret; it is read at each start.
        user: the account it runs as; None for the account that starts the stack.
        ports: the port it listens on by the setting that names it; the first one is its address.
        prepare: writes its files, before the process starts.
        finish: runs once it serves, on every start of the stack; must be repeatable.
        stop_signal: what asks it to end cleanly.
        stop_seconds: how long it may take to end before it is killed.
        ready_seconds: how long it may take until it serves.
    """

    name: str
    command: tuple[str, ...]
    probe: Callable[[], str | None]
    alive: Callable[[], str | None] | None = None
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
    """A step of the start that leaves no process behind.

    Attributes:
        run: does the work and may raise a ``LakehouseError``; must be repeatable.
    """

    name: str
    run: Callable[[], None]
    needs: tuple[str, ...] = ()


Step = Part | Task
