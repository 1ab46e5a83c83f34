"""The clock of a case."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass
class StoppedClock:
    """A clock that changes only when it is set."""

    now: datetime
