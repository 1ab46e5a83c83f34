"""A marker file: whether a person stopped the streaming application on purpose."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_FILE: Final = Path("run") / "streams.stopped"


def note_stopped(state: Path) -> None:
    """Record that a person stopped the application.

    Args:
        state: the state directory, also below.
    """
    (state / _FILE).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    (state / _FILE).touch(mode=0o600)


def forget_stopped(state: Path) -> None:
    """Record that the application should run."""
    (state / _FILE).unlink(missing_ok=True)


def stopped_on_purpose(state: Path) -> bool:
    """Whether a person stopped the application and nobody has started it since."""
    return (state / _FILE).exists()
