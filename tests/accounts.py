"""Whether tests can start a program as another account of this machine."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from pathlib import Path

from spark_jobs.stack.endpoint_account import may_pass
from spark_jobs.stack.spark_home import spark_home

# An account that exists on every Debian-like machine, and owns no files.
SOMEBODY = "nobody"
WHY_NOT = "only root can be somebody else, and only in a checkout that others may enter"


def can_be_somebody() -> bool:
    """Whether this process may start Java as ``SOMEBODY``, who reaches Spark's jars."""
    if os.getuid() != 0:
        return False
    account = pwd.getpwnam(SOMEBODY)
    return all(
        may_pass(folder.stat(), account.pw_uid, {account.pw_gid})
        for folder in _way_to((spark_home() / "jars").resolve())
    )


def _way_to(place: Path) -> Iterator[Path]:
    yield place
    yield from place.parents
