"""The table of a seed file: a load commits the rows that differ, and nothing where none do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import TableNotFoundError

from spark_jobs.bronze.errors import SeedRejectedError
from spark_jobs.bronze.seed_file import SeedRows, read_seed
from spark_jobs.graph.manifest import SourceEntry
from spark_jobs.graph.seeds import check_header, seed_bytes, seed_digest
from spark_jobs.settings import Settings
from spark_jobs.state.locks import table_lock
from spark_jobs.storage import tables
from spark_jobs.storage.keyed import merge_once
from spark_jobs.storage.lake import Lake, lock_directory
from spark_jobs.storage.rights import usual_rights
from spark_jobs.storage.small import write_rows
from spark_jobs.storage.streams import Merge
from spark_jobs.storage.tables import Txn

# The share of a file's lines that may be bad, where the source says nothing.
MOST_REJECTED: Final = 0.1
_GOES = "__goes"
_QUARANTINE = pa.schema([("line", pa.int64()), ("reason", pa.string()), ("text", pa.string())])


@dataclass(frozen=True)
class Loaded:
    """What a load did.

    Attributes:
        rejected: lines of the file that cannot be read.
        replaced: whether the whole table was written, because its columns are others.
    """

    source: str
    inserted: int
    updated: int
    deleted: int
    rejected: int
    version: int
    replaced: bool = False

    @property
    def told(self) -> str:
        """In a sentence."""
        counts = f"{self.inserted:,} inserted, {self.updated:,} updated, {self.deleted:,} deleted"
        moved = self.inserted or self.updated or self.deleted or self.replaced
        bad = f"; {self.rejected:,} lines in quarantine" if self.rejected else ""
        return f"{counts if moved else 'no row differs'}, version {self.version}{bad}"


def load_seed(settings: Settings, source: SourceEntry) -> Loaded:
    """Bring the table of a source to what its file says.

    Args:
        settings: of the project.
        source: with a file.

    Raises:
        SeedFileError: the file is not there, or not where it may be.
        SeedHeaderError: it has other columns.
        SeedUnreadableError: it is no CSV.
        SeedRejectedError: too many of its lines cannot be read; nothing was written.
        TableLockedError: another load of it runs.
    """
    path = source.path or ""
    content = seed_bytes(settings.project_dir, path)
    check_header(source.name, path, content, [one.name for one in source.columns])
    found = read_seed(path, content, source.columns, source.keys)
    _check_share(source, found)
    lake = Lake(settings.lake)
    with table_lock(lock_directory(settings.lake, settings.state), source.table_name):
        loaded = _written(lake.location(source.table_name), source, found)
        _quarantine(lake.quarantine(f"seed-{source.name}"), found, seed_digest(content))
    return loaded


def _check_share(source: SourceEntry, found: SeedRows) -> None:
    most = MOST_REJECTED if source.most_rejected is None else source.most_rejected
    if found.rejected and len(found.rejected) > most * found.lines:
        worst = found.rejected[0]
        raise SeedRejectedError(
            source.name,
            source.path or "",
            bad=len(found.rejected),
            lines=found.lines,
            most=most,
            first=f"Line {worst.line}: {worst.reason}",
        )


@usual_rights()
def _written(location: str, source: SourceEntry, found: SeedRows) -> Loaded:
    rows = found.rows
    try:
        table = DeltaTable(location)
    except TableNotFoundError:
        return _replace(location, source, found)
    held = table.to_pyarrow_table()
    was = _by_key(held.to_pylist(), source.keys)
    if _kinds(held.schema) != _kinds(rows.schema) or len(was) != held.num_rows:
        return _replace(location, source, found)
    now = _by_key(rows.to_pylist(), source.keys)
    inserted = [row for key, row in now.items() if key not in was]
    updated = [row for key, row in now.items() if key in was and was[key] != row]
    deleted = [row for key, row in was.items() if key not in now]
    if inserted or updated or deleted:
        marked = [{**row, _GOES: False} for row in (*inserted, *updated)]
        marked += [{**row, _GOES: True} for row in deleted]
        changed = pa.Table.from_pylist(marked, rows.schema.append(pa.field(_GOES, pa.bool_())))
        how = Merge(
            keys=source.keys,
            columns=tuple(rows.column_names),
            update=f"NOT s.{_GOES}",
            insert=f"NOT s.{_GOES}",
            delete=f"s.{_GOES}",
        )
        merge_once(table, changed, how, txn=Txn(f"seed:{source.name}", table.version() + 1))
        table.update_incremental()
    return Loaded(
        source.name,
        len(inserted),
        len(updated),
        len(deleted),
        len(found.rejected),
        table.version(),
    )


def _replace(location: str, source: SourceEntry, found: SeedRows) -> Loaded:
    """Write all rows: there is no table, or one with other columns or keys."""
    described = {one.name: tables.comment(one.description) for one in source.columns}
    schema = pa.schema(
        [pa.field(one.name, one.type, metadata=described[one.name]) for one in found.rows.schema]
    )
    write_deltalake(
        location,
        found.rows.cast(schema),
        mode="overwrite",
        schema_mode="overwrite",
        configuration={**tables.CHANGE_FEED, **tables.SHORT_LOG},
    )
    version = DeltaTable(location).version()
    count = found.rows.num_rows
    return Loaded(source.name, count, 0, 0, len(found.rejected), version, replaced=True)


def _by_key(
    rows: list[dict[str, Any]], keys: tuple[str, ...]
) -> dict[tuple[Any, ...], dict[str, Any]]:
    return {tuple(row.get(one) for one in keys): row for row in rows}


def _kinds(schema: pa.Schema) -> dict[str, pa.DataType]:
    return {one.name: one.type for one in schema}


def _quarantine(location: str, found: SeedRows, digest: str) -> None:
    """What the newest load rejected; a file without bad lines empties it."""
    if not found.rejected and not DeltaTable.is_deltatable(location):
        return
    rows = [{"line": one.line, "reason": one.reason, "text": one.text} for one in found.rejected]
    now = pa.Table.from_pylist(rows, _QUARANTINE)
    if DeltaTable.is_deltatable(location):
        was = DeltaTable(location).to_pyarrow_table().to_pylist()
        if sorted(was, key=lambda row: row["line"]) == rows:
            return
    write_rows(now, location, metadata={"file": digest})
