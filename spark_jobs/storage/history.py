"""Finds which commits of a table changed rows, and deletes old files and tables. No Spark."""

from __future__ import annotations

import base64
import json
import shutil
import string
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from deltalake import DeltaTable
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import FileSelector, FileType, PyFileSystem

from spark_jobs.errors import LakehouseError
from spark_jobs.storage import log
from spark_jobs.storage.errors import FilesRemainError
from spark_jobs.storage.lake import plain_location, remote_location
from spark_jobs.storage.rights import usual_rights

# A longer range counts as changed: reading it would cost more than it can save.
MOST_COMMITS = 500
_ROW_ACTIONS = frozenset({"add", "remove"})


def rows_changed(location: str, *, after: int, upto: int) -> bool:
    """Whether any commit in (after, upto] changed rows, column names or types.

    Compactions, property changes and commits with only a transaction do not. If a commit cannot be
    read, the answer is yes. Unlike ``changes_between`` it stops at the first such commit, and does
    not check that files exist.
    """
    return first_change(location, after=after, upto=upto) is not None


def first_change(location: str, *, after: int, upto: int) -> int | None:
    """The first version in (after, upto] that changed rows, column names or types.

    If a commit cannot be read, or there are too many, it counts as a change; see ``rows_changed``.

    Returns:
        None if there is none.
    """
    if upto - after > MOST_COMMITS:
        return after + 1
    described: int | None = None
    for version in range(after + 1, upto + 1):
        actions = _actions(location, version)
        if actions is None or any(_touches_rows(action) for action in actions):
            return version
        if described is None and any("metaData" in action for action in actions):
            described = version
    changed = described is not None and _columns_changed(location, after, upto)
    return described if changed else None


def last_alike(location: str, *, at: int, upto: int) -> int:
    """The newest version up to ``upto`` that has the rows and columns of version ``at``.

    Its files are there for longer: a vacuum after a compaction deletes those of earlier versions.
    """
    changed = first_change(location, after=at, upto=upto)
    last = max(at, upto) if changed is None else changed - 1
    return at if last > at and _columns_changed(location, at, last) else last


@dataclass(frozen=True)
class Changes:
    """What a range of commits contains.

    Attributes:
        rows_changed: whether any commit changed rows or columns.
        fed: whether the change feed covers the whole range and its files exist.
        reshaped: whether columns changed.
        rows: approximate number of rows written, changed or removed; None if a
            commit has no counts.
    """

    rows_changed: bool
    fed: bool
    reshaped: bool
    rows: int | None


def changes_between(location: str, *, after: int, upto: int) -> Changes:
    """What the commits in (after, upto] contain; an unreadable commit breaks the feed."""
    if upto - after > MOST_COMMITS:
        return _unknown(location, after, upto)
    touched, described, rows = False, False, 0
    counted = fed = True
    needed: set[str | None] = set()
    for version in range(after + 1, upto + 1):
        actions = _actions(location, version)
        if actions is None:
            return _unknown(location, after, upto)
        for action in actions:
            if "metaData" in action:
                described = True
                fed = fed and log.feeds_changes(action["metaData"].get("configuration"))
            needed |= set(_files_before(action))
        if any(_touches_rows(action) for action in actions):
            touched = True
            count = _rows_of(actions)
            counted = counted and count is not None
            rows += count or 0
    reshaped = described and _columns_changed(location, after, upto)
    return Changes(
        rows_changed=touched or reshaped,
        fed=not touched or (fed and _fed_from(location, after) and _have(location, needed)),
        reshaped=reshaped,
        rows=rows if counted else None,
    )


def _unknown(location: str, after: int, upto: int) -> Changes:
    """The changes of commits that are not read; the versions still say which columns they have."""
    try:
        reshaped = log.shape(location, after) != log.shape(location, upto)
    except LakehouseError:
        reshaped = False
    return Changes(rows_changed=True, fed=False, reshaped=reshaped, rows=None)


@dataclass(frozen=True)
class FeedFiles:
    """The files with the changes of a range of commits, as paths in the log.

    Attributes:
        changes: files whose rows have a ``_change_type``.
        added: data files; all their rows were inserted.
        removed: data files; all their rows were deleted.
        bytes: total size of the files; None if a commit does not have it.
    """

    changes: tuple[str, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    bytes: int | None

    @property
    def all(self) -> tuple[str, ...]:
        return self.changes + self.added + self.removed


def feed_files(location: str, *, after: int, upto: int) -> FeedFiles | None:
    """The files of the change feed in (after, upto].

    If a commit has change files, only these count; otherwise its added and removed data files do,
    as the Delta protocol says.

    Returns:
        None if files do not give the changes: deletion vectors, partitions, changed columns or
            protocol, or an unreadable commit.
    """
    found: dict[str, list[str]] = {"cdc": [], "add": [], "remove": []}
    sizes: list[int | None] = []
    for version in range(after + 1, upto + 1):
        actions = _actions(location, version)
        if actions is None or any({"metaData", "protocol"} & one.keys() for one in actions):
            return None
        kinds = ("cdc",) if any("cdc" in one for one in actions) else ("add", "remove")
        for kind in kinds:
            for file in (one[kind] for one in actions if kind in one):
                if file.get("deletionVector") or file.get("partitionValues"):
                    return None
                if kind == "cdc" or file.get("dataChange", True):
                    found[kind].append(str(file["path"]))
                    # Optional in the protocol where a file is removed.
                    sizes.append(file.get("size"))
    size = None if None in sizes else sum(one for one in sizes if one is not None)
    return FeedFiles(tuple(found["cdc"]), tuple(found["add"]), tuple(found["remove"]), size)


def _actions(location: str, version: int) -> list[Mapping[str, Any]] | None:
    """The actions of a commit; None if it is no longer readable."""
    files = PyFileSystem(DeltaStorageHandler(plain_location(location)))
    try:
        with files.open_input_file(f"_delta_log/{version:020}.json") as file:
            return [json.loads(line) for line in file.read().splitlines() if line.strip()]
    except OSError:
        return None


def _fed_from(location: str, version: int) -> bool:
    try:
        return log.has_change_feed(location, version)
    except LakehouseError:
        return False


def _files_before(action: Mapping[str, Any]) -> Iterator[str | None]:
    """Paths of files that only old versions need, so that a vacuum may have deleted them.

    They are the files of the change feed, and the data files that a commit removed. None stands for
    a path outside of the table.
    """
    file = action.get("cdc") or action.get("remove")
    if file is None:
        return
    yield _relative(unquote(str(file["path"])))
    vector = file.get("deletionVector")
    if vector is not None and vector["storageType"] != "i":
        yield _vector_path(str(vector["pathOrInlineDv"])) if vector["storageType"] == "u" else None


def _relative(path: str) -> str | None:
    return None if path.startswith("/") or ":/" in path else path


# The log encodes names of deletion vectors in ZeroMQ's base 85 (Z85). Map its digits to those of
# Python's base64.b85decode.
_DIGITS = (
    string.digits + string.ascii_lowercase + string.ascii_uppercase + ".-:+=^!/*?&<>()[]{}@%$#"
)
_PYTHON_DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
_PYTHON_DIGITS += "!#$%&()*+-;<=>?@^_`{|}~"


def _vector_path(name: str) -> str:
    """The file of a deletion vector, from its directory prefix (may be empty) and 20 digits.

    >>> _vector_path("ab^-aqEH.-t@S}K{vb[*k^")
    'ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin'
    """
    folder, digits = name[:-20], name[-20:]
    number = base64.b85decode(digits.translate(str.maketrans(_DIGITS, _PYTHON_DIGITS)))
    file = f"deletion_vector_{uuid.UUID(bytes=number)}.bin"
    return f"{folder}/{file}" if folder else file


def _have(location: str, paths: Iterable[str | None]) -> bool:
    """Whether all files exist."""
    known = [path for path in paths if path is not None]
    if len(known) < len(set(paths)):
        return False
    if not remote_location(location):
        root = Path(plain_location(location))
        return all((root / path).is_file() for path in known)
    files = PyFileSystem(DeltaStorageHandler(location))
    return all(one.type is FileType.File for one in files.get_file_info(known))


# Names of metrics in Spark and in delta-rs.
_COUNTED = (
    ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted"),
    ("num_target_rows_inserted", "num_target_rows_updated", "num_target_rows_deleted"),
    ("numDeletedRows", "numUpdatedRows"),
    ("num_deleted_rows", "num_updated_rows"),
)


def _rows_of(actions: list[Mapping[str, Any]]) -> int | None:
    """The rows that a commit wrote, changed or removed, from its metrics or its files."""
    info: Mapping[str, Any] = next(
        (one["commitInfo"] for one in actions if "commitInfo" in one), {}
    )
    metrics = info.get("operationMetrics") or {}
    for names in _COUNTED:
        found = [int(metrics[name]) for name in names if metrics.get(name) is not None]
        if found:
            return sum(found)
    total = 0
    for action in actions:
        for kind in _ROW_ACTIONS & action.keys():
            stats = action[kind].get("stats")
            if not action[kind].get("dataChange", True):
                continue
            rows = json.loads(stats).get("numRecords") if stats else None
            if rows is None:
                return None
            total += int(rows)
    return total


def first_lost(location: str, *, after: int, upto: int) -> int | None:
    """The first version in (after, upto] whose commit is not readable; None if all are."""
    versions = range(after + 1, upto + 1)
    return next((one for one in versions if _actions(location, one) is None), None)


def rows_of_commit(location: str, version: int) -> int | None:
    """Approximate number of rows that a commit wrote, changed or removed; None if unknown."""
    actions = _actions(location, version)
    return None if actions is None else _rows_of(actions)


def readable(location: str, version: int) -> bool:
    """Whether a version's commit and all of its files still exist."""
    try:
        table = log.open_table(location, version=version)
    except LakehouseError:
        return False
    if table is None:
        return False
    return _have(location, map(_relative, log.paths(table)))


def folders(location: str) -> list[str]:
    """Names of the subdirectories; empty if the directory does not exist."""
    if not remote_location(location):
        root = Path(plain_location(location))
        return sorted(one.name for one in root.iterdir() if one.is_dir()) if root.is_dir() else []
    files = PyFileSystem(DeltaStorageHandler(location))
    found = files.get_file_info(FileSelector("", allow_not_found=True))
    return sorted(one.base_name for one in found if one.type is FileType.Directory)


@usual_rights()
def vacuum(location: str, *, days: float) -> None:
    """Delete files that no version of the last ``days`` days needs."""
    if log.table_version(location) is not None:
        hours = round(24 * days)
        # Not from the cache: vacuum's commits change this object's version.
        table = DeltaTable(plain_location(location))
        table.vacuum(retention_hours=hours, dry_run=False, enforce_retention_duration=False)


def remove_table(location: str) -> None:
    """Delete a table's files; a missing table is ignored.

    Raises:
        FilesRemainError: some of them cannot be deleted; all others are.
    """
    if remote_location(location):
        files = PyFileSystem(DeltaStorageHandler(location))
        for one in files.get_file_info(FileSelector("", recursive=True, allow_not_found=True)):
            if one.type is FileType.File:
                files.delete_file(one.path)
        return
    path = plain_location(location)
    shutil.rmtree(path, ignore_errors=True)
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise FilesRemainError(location, f"{error.filename}: {error.strerror or error}") from error


def discard_table(location: str) -> None:
    """Delete a helper table that nobody reads any more, as far as possible now."""
    with suppress(FilesRemainError):
        remove_table(location)


def _touches_rows(action: Mapping[str, Any]) -> bool:
    return any(action[kind].get("dataChange", True) for kind in _ROW_ACTIONS & action.keys())


def _columns_changed(location: str, after: int, upto: int) -> bool:
    """Whether column names, types or their mapping changed, which may break a query."""
    try:
        return log.shape(location, after) != log.shape(location, upto)
    except LakehouseError:
        return True
