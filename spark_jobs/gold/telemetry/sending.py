"""Telling other systems how a refresh goes: in a thread, and never at a refresh's cost.

A receiver that is down or slow changes nothing: what was published is published, and whoever
refreshes goes on after a moment, whether the message arrived or not.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

# So long a process that ends soon gives its message a head start.
PATIENCE_SECONDS: Final = 0.25

log = logging.getLogger(__name__)


class Sender:
    """Sends one message at a time; what comes meanwhile is dropped, so that none can pile up."""

    def __init__(self, what: str) -> None:
        """Make a sender.

        Args:
            what: is sent, in the words of the log.
        """
        self._what = what
        self._under_way = threading.Lock()

    def send(self, prepare: Callable[[], Callable[[], object]], *, about: str) -> None:
        """Prepare a message here, and send it in a thread.

        Args:
            prepare: makes the message and returns what sends it; it may read logs.
            about: the attempt, for the log.
        """
        if not self._under_way.acquire(blocking=False):
            log.warning("%s of %s are dropped: others are still under way", self._what, about)
            return
        try:
            thread = threading.Thread(target=self._carry_out, args=(prepare(), about), daemon=True)
            thread.start()
        except Exception:
            self._under_way.release()
            log.exception("no %s of %s", self._what, about)
        else:
            thread.join(PATIENCE_SECONDS)

    def wait(self) -> None:
        """Wait until nothing is under way."""
        with self._under_way:
            pass

    def _carry_out(self, send: Callable[[], object], about: str) -> None:
        try:
            send()
        except Exception:
            log.exception("%s of %s were not sent", self._what, about)
        finally:
            self._under_way.release()
