"""Makes a table older than it is: its log, and the files as the file system dates them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

_TIMES = {"timestamp", "deletionTimestamp", "modificationTime", "createdTime"}
DAY_MS = 86_400_000


def age(location: str, days: float) -> None:
    """Set the table's whole past so many days back; what is written from now on is new."""
    for path in sorted(Path(location).rglob("*")):
        if path.suffix == ".json":
            lines = [_older(json.loads(line), days) for line in path.read_text().splitlines()]
            path.write_text("\n".join(map(json.dumps, lines)))
        if path.is_file():
            at = path.stat().st_mtime - days * DAY_MS / 1000
            os.utime(path, (at, at))


def _older(value: Any, days: float) -> Any:
    if not isinstance(value, dict):
        return value
    return {
        key: int(one - days * DAY_MS)
        if key in _TIMES and isinstance(one, int)
        else _older(one, days)
        for key, one in value.items()
    }
