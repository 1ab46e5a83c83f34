"""The files of a Delta table's log: its newest version, and entries that nobody reads any more.

Each commit adds at least one file, and whoever opens or writes a table lists the directory. On a
file system that means all of it. delta-rs takes 0.7 seconds for an append to a log of 100,000
commits, which a stream makes in days.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import FileSelector, PyFileSystem

from spark_jobs.storage.lake import plain_location, remote_location

LOG = "_delta_log"
_COMMIT = re.compile(r"\d{20}\.json")
# A checkpoint names all files that were removed within a week: 21 MB for 300,000 of them, which a
# table has that commits every two seconds.
_APART, _NEWEST = 1000, 3
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")
# Commits, checkpoints, Delta's checksums of both, and the checksums that Hadoop writes beside them.
_ENTRY = re.compile(r"\.?(\d{20})\.(json|crc|checkpoint(\.[0-9a-f.-]+)?\.(parquet|json))(\.crc)?")


def newest_version(place: str) -> int | None:
    """The newest version in a log on this machine; None if there is no table.

    Versions have no gaps, so it looks for the next one, from the last checkpoint on.

    Args:
        place: of the table, a path.
    """
    folder = Path(place, LOG)
    try:
        version = int(json.loads((folder / "_last_checkpoint").read_text("utf-8"))["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return _newest_listed(folder)
    if not (folder / f"{version:020}.json").exists():
        return _newest_listed(folder)
    while (folder / f"{version + 1:020}.json").exists():
        version += 1
    return version


def oldest_entry(location: str) -> int | None:
    """The oldest version whose commit is in the log of a table; None if there is no table."""
    found = [int(name[:20]) for name in _names(location) if _COMMIT.fullmatch(name)]
    return min(found, default=None)


def past_entries(location: str, *, before: int) -> list[str]:
    """Files of the log that are not needed to read a version or any later one, or their changes.

    A version is read from a checkpoint and the commits after it, so the newest checkpoint that is
    not later than the version stays, with all later commits. Without one, everything does. Of the
    later checkpoints the newest stay, which whoever opens the table uses, and one every
    ``_APART`` versions.

    Args:
        location: of the table.
        before: the oldest version that stays readable.

    Returns:
        paths below the table's location, the oldest versions first: removed in this order, they
        leave no gap.
    """
    names = _names(location)
    checkpoints = sorted(int(found[1]) for name in names if (found := _CHECKPOINT.fullmatch(name)))
    first = max((one for one in checkpoints if one <= before), default=0)
    superfluous = _superfluous([one for one in checkpoints if one >= first])
    entries = sorted((found[1], name) for name in names if (found := _ENTRY.fullmatch(name)))
    return [
        f"{LOG}/{name}"
        for number, name in entries
        if int(number) < first or (".checkpoint." in name and int(number) in superfluous)
    ]


def _superfluous(checkpoints: list[int]) -> set[int]:
    """Checkpoints, of these ascending ones, without which each version can still be read."""
    kept = checkpoints[:1]
    for one in checkpoints:
        if one - kept[-1] >= _APART:
            kept.append(one)
    return {*checkpoints} - {*kept, *checkpoints[-_NEWEST:]}


def _names(location: str) -> list[str]:
    """The names of the files of the log."""
    if remote_location(location):
        files = PyFileSystem(DeltaStorageHandler(location))
        found = files.get_file_info(FileSelector(LOG, allow_not_found=True))
        return [one.base_name for one in found]
    folder = Path(plain_location(location), LOG)
    return [one.name for one in os.scandir(folder)] if folder.is_dir() else []


def _newest_listed(folder: Path) -> int | None:
    try:
        with os.scandir(folder) as entries:
            found = [one.name for one in entries if _COMMIT.fullmatch(one.name)]
    except OSError:
        return None
    return int(max(found).removesuffix(".json")) if found else None
