"""Sends telemetry in a background thread, so that it never delays a refresh.

A receiver that is down or slow does not affect the publication; the refresh waits a moment at most.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

# Wait this long for the message, in case the process ends right after.
PATIENCE_SECONDS: Final = 0.25

log = logging.getLogger(__name__)


class Sender:
    """Sends one message at a time; messages that come meanwhile are dropped."""

    def __init__(self, what: str) -> None:
        """Create a sender.

        Args:
            what: what is sent, as named in log lines.
        """
        self._what = what
        self._sending = threading.Lock()

    def send(self, prepare: Callable[[], Callable[[], object]], *, about: str) -> None:
        """Prepare a message in this thread, and send it in another.

        Args:
            prepare: builds the message and returns the function that sends it; it may read Delta
                logs.
            about: the attempt's id, for log lines.
        """
        if not self._sending.acquire(blocking=False):
            log.warning("%s of %s are dropped: others are still under way", self._what, about)
            return
        try:
            thread = threading.Thread(target=self._carry_out, args=(prepare(), about), daemon=True)
            thread.start()
        except Exception:
            self._sending.release()
            log.exception("no %s of %s", self._what, about)
        else:
            thread.join(PATIENCE_SECONDS)

    def wait(self) -> None:
        """Wait until no message is being sent."""
        with self._sending:
            pass

    def _carry_out(self, send: Callable[[], object], about: str) -> None:
        try:
            send()
        except Exception:
            log.exception("%s of %s were not sent", self._what, about)
        finally:
            self._sending.release()
