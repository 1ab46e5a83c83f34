"""Tables that are made once and copied: Spark takes a second of CPU for the first commit of one."""

from __future__ import annotations

import hashlib
import json
import shutil
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Templates:
    """Tables by the text that describes their rows, in a folder of their own."""

    folder: Path

    def copy(self, text: str, location: str, make: Callable[[str], None]) -> None:
        """Put a table at a location, as ``make`` would.

        Args:
            text: what the table is made of: the same text, the same table.
            location: where the copy goes; there is nothing yet.
            make: makes the table at the location that it is given.
        """
        template = self.folder / hashlib.sha256(text.encode()).hexdigest()[:16]
        if not template.exists():
            make(str(template))
        shutil.copytree(template, location, ignore=shutil.ignore_patterns("*.crc"))
        _identify(Path(location))


def _identify(table: Path) -> None:
    """Give a copied table an identity of its own: caches and watermarks know tables by it.

    Checksums are left behind: Hadoop's, because the commit is another one now, and Delta's, because
    they repeat the identity. Both may be absent.
    """
    [first] = (table / "_delta_log").glob("*.json")
    actions = [json.loads(line) for line in first.read_text("utf-8").splitlines()]
    [metadata] = [one["metaData"] for one in actions if "metaData" in one]
    metadata["id"] = str(uuid.uuid4())
    first.write_text("".join(f"{json.dumps(one)}\n" for one in actions), encoding="utf-8")
