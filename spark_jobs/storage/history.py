"""Which commits of a table touched rows, and taking a table's files away. No Spark."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable

from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import PyFileSystem

from spark_jobs.storage.lake import plain_location, remote_location

# A longer range is taken for changed: reading it would cost more than it can save.
MOST_COMMITS = 500
_ROW_ACTIONS = frozenset({"add", "remove"})


def rows_changed(location: str, *, after: int, upto: int) -> bool:
    """Whether any commit after one version, up to another, touched rows or the schema.

    Compaction and commits that carry nothing but a transaction do not. Where a commit is not
    readable any more the answer is yes.
    """
    if upto - after > MOST_COMMITS:
        return True
    files = PyFileSystem(DeltaStorageHandler(plain_location(location)))
    for version in range(after + 1, upto + 1):
        try:
            with files.open_input_file(f"_delta_log/{version:020}.json") as file:
                lines = file.read().decode().splitlines()
        except OSError:
            return True
        if _touches_rows(lines):
            return True
    return False


def remove_table(location: str) -> None:
    """Remove a table's files; one that is gone is fine."""
    if remote_location(location):
        DeltaStorageHandler(location).delete_root_dir_contents()
    else:
        shutil.rmtree(plain_location(location), ignore_errors=True)


def _touches_rows(lines: Iterable[str]) -> bool:
    for line in lines:
        action = json.loads(line) if line.strip() else {}
        # New metadata may carry a new schema, which a query may trip over.
        if "metaData" in action:
            return True
        if any(
            action.get(kind, {}).get("dataChange", True) for kind in _ROW_ACTIONS & action.keys()
        ):
            return True
    return False
