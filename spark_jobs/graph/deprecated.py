"""Warnings about views that read a column which its own view will remove."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from spark_jobs.definitions.deprecation import Deprecation
from spark_jobs.errors import Location, SubjectError
from spark_jobs.graph.columns_read import read_of_tables
from spark_jobs.graph.manifest import GoldEntry, Manifest
from spark_jobs.graph.parsing import SqlText, parse_select
from spark_jobs.graph.sql import table_nodes


class DeprecatedColumnError(SubjectError):
    """A view reads a column that may be removed."""

    condition = "DEPRECATED_COLUMN"
    table: str
    column: str
    deprecation: Deprecation
    primary = '{subject} reads column "{column}" of {table}, which may be removed from {day}'

    @property
    def day(self) -> str:
        return self.deprecation.day.isoformat()

    def __post_init__(self) -> None:
        use = self.deprecation.use
        self.hint = f"Use {use.rstrip('.')}." if use else f"Ask the owner of {self.table}."
        super().__post_init__()


def deprecated_reads(
    manifest: Manifest, entry: GoldEntry, source: SqlText
) -> Iterator[DeprecatedColumnError]:
    """Deprecated columns of other views that a view reads.

    Args:
        manifest: the compiled project.
        entry: the view that reads.
        source: its SELECT, in its file.

    Raises:
        LakehouseError: the text is not one SELECT.
    """
    columns = {
        (str(manifest.gold[name].table_name), one.name): one.deprecation
        for name in entry.upstream
        if name in manifest.gold
        for one in manifest.gold[name].columns
        if one.deprecation is not None
    }
    if not columns:
        return
    read = read_of_tables(entry.query)
    tree = parse_select(source)
    for (table, column), deprecation in columns.items():
        only = read.get(table, frozenset())
        if only is None or column.lower() in only:
            yield DeprecatedColumnError(
                f'gold view "{entry.name}"',
                table,
                column,
                deprecation,
                location=_place(tree, source, table, column),
            )


def _place(tree: exp.Query, source: SqlText, table: str, column: str) -> Location:
    """The location where a query reads a column; if it is not found, that of the table."""
    tables = [one for one in table_nodes(tree) if f"{one.db}.{one.name}".lower() == table]
    aliases = {one.alias_or_name.lower() for one in tables}
    found = [one for one in tree.find_all(exp.Column) if one.name.lower() == column.lower()]
    qualified = [one for one in found if one.table.lower() in aliases]
    plain = [one for one in found if not one.table]
    nodes: list[exp.Expression] = [*qualified, *plain, *tables]
    return source.of(nodes[0]) if nodes else source.first()
