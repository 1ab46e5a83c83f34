"""A page of status that is old says so itself: by its script, or marked by the server.

The script is the only one that the page's policy lets run. Airflow's policy lets none run; there
the server marks the page whenever it answers, and the page asks again every minute.
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
    """The tag that begins the body of a page that was written at a moment."""
    return _BODY.format(at=at.astimezone(UTC).isoformat(), after=OLD_AFTER_SECONDS)


def script_source() -> str:
    """How a Content-Security-Policy names the script.

    >>> script_source().startswith("'sha256-")
    True
    """
    return f"'sha256-{base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()}'"


def marked(text: str, *, now: datetime) -> str:
    """The page as Airflow serves it, with links to Airflow's pages, and marked where it is old.

    One without a time is left alone.
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
