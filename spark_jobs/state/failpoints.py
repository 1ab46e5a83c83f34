"""Named points at which tests kill the process with SIGKILL."""

from __future__ import annotations

import os
import signal
from collections import Counter
from typing import Final

VARIABLE: Final = "TIDEMARK_FAILPOINT"
# Return code of a process that was killed by SIGKILL.
EXIT_CODE: Final = -signal.SIGKILL

_passed: Counter[str] = Counter()


def failpoint(name: str) -> None:
    """Kill the process if ``TIDEMARK_FAILPOINT`` is ``name``, or ``name:N`` at the N-th call.

    This is not a setting but a switch for tests, so it is read from the environment directly.
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
