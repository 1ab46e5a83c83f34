"""Ends a process with the status that its work had."""

from __future__ import annotations

import atexit
import logging
import os
import sys
from contextlib import suppress
from dataclasses import dataclass


@dataclass
class Leaving:
    """Ends the process behind what runs at its exit, before Python's parts are taken down.

    Threads of Arrow read and close files through Python. While the interpreter is taken down, it
    ends each thread that wants to run Python code, in the middle of C++. That aborts the process
    with status 134, or it crashes, though all work was done.

    Attributes:
        status: of the process.
    """

    status: int = 1

    def register(self) -> None:
        """Call it first of all: what is registered later runs before it."""
        atexit.register(self._leave)

    def _leave(self) -> None:
        # Registered before, so it would run later.
        logging.shutdown()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(self.status)
