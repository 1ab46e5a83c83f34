"""Marks a status page that is out of date: by a script, or by the server.

The page's policy allows only this script. Airflow's policy allows none; there the server marks the
page in each response, and the page reloads every minute.
"""

from __future__ import annotations

import base64
import hashlib
import re
from datetime import UTC, datetime
from typing import Final

# How often the DAG ops__stream_watch writes the page.
PERIOD_MINUTES: Final = 5
OLD_AFTER_SECONDS: Final = 2 * PERIOD_MINUTES * 60
_BODY: Final = '<body data-at="{at}" data-old-after="{after}">'
_WRITTEN: Final = re.compile(r'<body data-at="([^"]+)" data-old-after="(\d+)">')
_HIDDEN: Final = '<section id="old" class="sheet attention" hidden>'
_AGE: Final = '<b id="age"></b>'
NOTICE: Final = (
    f"{_HIDDEN}<strong>This page is {_AGE} old and may be wrong.</strong> "
    "<p>The DAG ops__stream_watch is paused, or its task <i>page</i> fails.</p></section>"
)
SCRIPT: Final = """\
const body = document.body, {at, oldAfter} = body.dataset;
function look() {
  const seconds = (Date.now() - Date.parse(at)) / 1000;
  if (seconds <= Number(oldAfter)) return;
  body.className = "old";
  document.getElementById("old").hidden = false;
  document.getElementById("age").textContent = Math.floor(seconds / 60) + " min";
}
look();
setInterval(look, 10000);
"""


def opening(at: datetime) -> str:
    """The opening tag of the body, with the time when the page was written."""
    return _BODY.format(at=at.astimezone(UTC).isoformat(), after=OLD_AFTER_SECONDS)


def script_source() -> str:
    """The script's source expression for a Content-Security-Policy.

    >>> script_source().startswith("'sha256-")
    True
    """
    return f"'sha256-{base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()}'"


def marked(text: str, *, now: datetime) -> str:
    """The page as Airflow serves it, with links to Airflow's pages, marked if it is out of date.

    A page without a time is not marked.
    """
    written = _WRITTEN.search(text)
    if written is None:
        return text
    seconds = (now - datetime.fromisoformat(written[1])).total_seconds()
    if seconds <= int(written[2]):
        return text.replace("<body ", '<body class="served" ', 1)
    text = text.replace("<body ", '<body class="served old" ', 1)
    text = text.replace(_HIDDEN, _HIDDEN.replace(" hidden", ""), 1)
    return text.replace(_AGE, _AGE.replace("><", f">{int(seconds // 60)} min<"), 1)
