"""The clock of a case, which the case sets."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass
class StoppedClock:
    """A clock that goes on when it is set."""

    now: datetime
