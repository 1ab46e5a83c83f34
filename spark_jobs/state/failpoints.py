"""Named points where a test can end the process by SIGKILL."""

from __future__ import annotations

import os
import signal
from collections import Counter
from typing import Final

VARIABLE: Final = "TIDEMARK_FAILPOINT"
# What a parent sees of a process that SIGKILL ended.
EXIT_CODE: Final = -signal.SIGKILL

_passed: Counter[str] = Counter()


def failpoint(name: str) -> None:
    """End the process here when ``TIDEMARK_FAILPOINT`` is ``name``, or ``name:N`` the N-th time.

    This is a switch for tests and no setting, so it is read from the environment directly.
    """
    armed = os.environ.get(VARIABLE)
    if not armed:
        return
    point, _, count = armed.partition(":")
    if point != name:
        return
    _passed[name] += 1
    if _passed[name] >= int(count or 1):
        os.kill(os.getpid(), signal.SIGKILL)
