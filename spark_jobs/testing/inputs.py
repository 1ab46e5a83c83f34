"""The inputs of a case: real Delta tables with change feeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from spark_jobs.graph.last_step import DeleteInsert
from spark_jobs.graph.manifest import Column, GoldEntry, Manifest
from spark_jobs.names import Layer, TableName
from spark_jobs.storage import arrow_tables
from spark_jobs.storage.arrow_types import arrow_columns
from spark_jobs.storage.columns import struct_type
from spark_jobs.storage.delta import Txn
from spark_jobs.testing.errors import CaseTableError
from spark_jobs.testing.multisets import Row, difference
from spark_jobs.testing.text_tables import TextTable, typed_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.errors import Location

_WRITER = "cases"


class InputTable:
    """A table that a view reads; each call of ``commit`` is one commit on it."""

    def __init__(
        self, location: str, schema: pa.Schema, *, keys: Sequence[str], rows: pa.Table
    ) -> None:
        self._schema = schema
        self._keys = tuple(keys)
        self._rows = self._filled(rows)
        self._pending = self._rows
        self._table = arrow_tables.create(self._rows, location)

    def delete(self, text: TextTable) -> None:
        """Delete all rows that match one of these in the given columns.

        Raises:
            CaseTableError: there is no such row, or a value is not of its column's type.
        """
        found = typed_rows(text, self._schema)
        rows = self._pending.to_pylist()
        for row in found.to_pylist():
            hit = [_agree(one, row, text.columns) for one in rows]
            self._expect(any(hit), row, text.location)
            rows = [one for at, one in enumerate(rows) if not hit[at]]
        self._hold(rows)

    def update(self, text: TextTable) -> None:
        """Set the given columns in the rows with the same keys.

        Raises:
            CaseTableError: a key column is missing, or no row has the key.
        """
        found = typed_rows(text, self._schema)
        if not self._keys or not set(self._keys) <= set(text.columns):
            problem = f"an update names the keys of its rows: {', '.join(self._keys) or 'none'}"
            hint = "Add the key columns, or write delete and insert where the table has no keys."
            raise CaseTableError(problem, hint, location=text.location)
        rows = self._pending.to_pylist()
        for row in found.to_pylist():
            hit = [_agree(one, row, self._keys) for one in rows]
            self._expect(any(hit), row, text.location)
            rows = [one | row if hit[at] else one for at, one in enumerate(rows)]
        self._hold(rows)

    def insert(self, text: TextTable) -> None:
        """Add rows; missing columns are NULL.

        Raises:
            CaseTableError: an unknown column, or a value that is not of its type.
        """
        self._pending = pa.concat_tables(
            [self._pending, self._filled(typed_rows(text, self._schema))]
        )

    def commit(self) -> None:
        """Write the changes since the last commit; without a change, nothing."""
        deleted, inserted = difference(self._rows, self._pending)
        if not deleted and not inserted:
            return
        # All copies of a deleted row are deleted, so the remaining ones are inserted again.
        gone = list({repr(row): row for row in deleted}.values())
        texts = {repr(row) for row in gone}
        staying = [row for row in self._pending.to_pylist() if repr(row) in texts]
        arrow_tables.change(
            self._table,
            deleted=pa.Table.from_pylist(gone, schema=self._schema),
            inserted=pa.Table.from_pylist([*inserted, *staying], schema=self._schema),
            step=DeleteInsert(),
            txn=Txn(_WRITER, self._table.version() + 1),
            metadata={},
        )
        self._table.update_incremental()
        self._rows = self._pending

    def _hold(self, rows: list[Row]) -> None:
        self._pending = pa.Table.from_pylist(rows, schema=self._schema)

    def _filled(self, rows: pa.Table) -> pa.Table:
        return pa.Table.from_pylist(rows.to_pylist(), schema=self._schema)

    @staticmethod
    def _expect(found: object, row: Row, location: Location) -> None:
        if not found:
            text = ", ".join(f"{name} {value}" for name, value in row.items())
            hint = "Check the given rows and the changes of earlier steps."
            raise CaseTableError(f"no row has {text}", hint, location=location)


def schema_of(columns: Sequence[Column], spark: Callable[[], SparkSession]) -> pa.Schema:
    """The columns as an Arrow schema; PySpark converts types that ``arrow_columns`` lacks."""
    found = arrow_columns(columns)
    if found is not None:
        return found
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415

    return to_arrow_schema(struct_type(spark(), columns), timezone="UTC")


def columns_and_keys(
    manifest: Manifest, table: TableName
) -> tuple[tuple[Column, ...], tuple[str, ...]]:
    """The columns of a table that a view reads, and those that identify a row."""
    match table.layer:
        case Layer.BRONZE:
            source = manifest.sources[table.name]
            return source.columns, source.keys
        case Layer.SILVER:
            silver = manifest.silver[table.name]
            return silver.columns, silver.row_key
        case Layer.GOLD:
            gold = manifest.gold[table.name]
            return gold.columns, unique_key(gold)


def unique_key(entry: GoldEntry) -> tuple[str, ...]:
    """The columns that identify a view's row: derived, or else declared; () for neither."""
    derived = entry.maintenance.key if entry.maintenance is not None else ()
    return derived or entry.grain


def _agree(one: Row, other: Row, columns: Sequence[str]) -> bool:
    return all(one[name] == other[name] for name in columns)
