"""The table of a seed file: a load commits only rows that differ."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Final

import pyarrow as pa

from spark_jobs.bronze.errors import SeedRejectedError
from spark_jobs.bronze.seed_file import read_seed
from spark_jobs.bronze.seed_rows import SeedRows
from spark_jobs.graph.manifest import SourceEntry
from spark_jobs.graph.seed_columns import column_problems
from spark_jobs.graph.seeds import seed_bytes, seed_digest
from spark_jobs.settings import Settings
from spark_jobs.state.locks import table_lock
from spark_jobs.storage.lake import Lake, lock_directory
from spark_jobs.storage.small_tables import hold, sync_rows

# Default of the share of a file's lines that may be bad.
MOST_REJECTED: Final = 0.1
_QUARANTINE = pa.schema([("line", pa.int64()), ("reason", pa.string()), ("text", pa.string())])


@dataclass(frozen=True)
class Loaded:
    """The result of a load.

    Attributes:
        rejected: rejected lines of the file.
        replaced: whether the table was rewritten because its columns changed.
    """

    source: str
    inserted: int
    updated: int
    deleted: int
    rejected: int
    version: int
    replaced: bool = False

    @property
    def message(self) -> str:
        """The result as a sentence."""
        counts = f"{self.inserted:,} inserted, {self.updated:,} updated, {self.deleted:,} deleted"
        moved = self.inserted or self.updated or self.deleted or self.replaced
        bad = f"; {self.rejected:,} lines in quarantine" if self.rejected else ""
        return f"{counts if moved else 'no row differs'}, version {self.version}{bad}"


def load_seed(settings: Settings, source: SourceEntry) -> Loaded:
    """Load a source's file into its table.

    Args:
        settings: project settings.
        source: a source with a file.

    Raises:
        SeedFileError: the file is missing, or in a directory that is not allowed.
        SeedHeaderError: its columns are not the declared ones.
        SeedTypeError: a column of a Parquet file cannot become the declared type.
        SeedUnreadableError: it cannot be divided into rows.
        SeedRejectedError: too many lines are bad; nothing was written.
        TableLockedError: another load is running.
    """
    path = source.path or ""
    content = seed_bytes(settings.project_dir, path)
    columns = {one.name: one.type for one in source.columns}
    problems = column_problems(source.name, path, content, form=source.format, columns=columns)
    for problem in problems:
        raise problem
    found = read_seed(path, content, source.columns, source.keys, form=source.format)
    _check_share(source, found)
    lake = Lake(settings.lake)
    with table_lock(lock_directory(settings.lake, settings.state), source.table_name):
        brought = sync_rows(
            found.rows,
            lake.location(source.table_name),
            keys=source.keys,
            comments={one.name: one.description for one in source.columns},
            writer=f"seed:{source.name}",
        )
        _quarantine(lake.rejected_lines(source.name), found, seed_digest(content))
    return Loaded(source=source.name, rejected=len(found.rejected), **asdict(brought))


def _check_share(source: SourceEntry, found: SeedRows) -> None:
    most = MOST_REJECTED if source.most_rejected is None else source.most_rejected
    if found.rejected and len(found.rejected) > most * found.lines:
        worst = found.rejected[0]
        raise SeedRejectedError(
            source.name,
            source.path or "",
            bad=len(found.rejected),
            lines=found.lines,
            unit=source.format.unit,
            most=most,
            first=f"{source.format.unit.capitalize()} {worst.line}: {worst.reason}",
        )


def _quarantine(location: str, found: SeedRows, digest: str) -> None:
    """Store the lines that the newest load rejected; empty without bad lines."""
    rows = [{"line": one.line, "reason": one.reason, "text": one.text} for one in found.rejected]
    hold(pa.Table.from_pylist(rows, _QUARANTINE), location, metadata={"file": digest})
