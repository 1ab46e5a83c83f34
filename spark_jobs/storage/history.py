"""Which commits of a table touched rows, and taking a table's files away. No Spark."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from typing import Any

from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import PyFileSystem

from spark_jobs.errors import LakehouseError
from spark_jobs.storage import log
from spark_jobs.storage.lake import plain_location, remote_location

# A longer range is taken for changed: reading it would cost more than it can save.
MOST_COMMITS = 500
_ROW_ACTIONS = frozenset({"add", "remove"})


def rows_changed(location: str, *, after: int, upto: int) -> bool:
    """Whether any commit after one version, up to another, touched rows, names or types.

    Compaction, properties and commits that carry nothing but a transaction do not. Where a commit
    is not readable any more the answer is yes.
    """
    if upto - after > MOST_COMMITS:
        return True
    files = PyFileSystem(DeltaStorageHandler(plain_location(location)))
    described = False
    for version in range(after + 1, upto + 1):
        try:
            with files.open_input_file(f"_delta_log/{version:020}.json") as file:
                actions = [json.loads(line) for line in file.read().splitlines() if line.strip()]
        except OSError:
            return True
        if any(_touches_rows(action) for action in actions):
            return True
        described = described or any("metaData" in action for action in actions)
    return described and _columns_changed(location, after, upto)


def remove_table(location: str) -> None:
    """Remove a table's files; one that is gone is fine."""
    if remote_location(location):
        DeltaStorageHandler(location).delete_root_dir_contents()
    else:
        shutil.rmtree(plain_location(location), ignore_errors=True)


def _touches_rows(action: Mapping[str, Any]) -> bool:
    return any(action[kind].get("dataChange", True) for kind in _ROW_ACTIONS & action.keys())


def _columns_changed(location: str, after: int, upto: int) -> bool:
    """Whether names or types changed: a query may trip over that without any row changing."""
    try:
        before, now = log.schema(location, after), log.schema(location, upto)
    except LakehouseError:
        return True
    return [(one.name, one.type) for one in before] != [(one.name, one.type) for one in now]
