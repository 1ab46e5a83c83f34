"""Which columns a view's columns come from, as a facet of OpenLineage."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from openlineage.client.facet_v2 import column_lineage_dataset as facet

from spark_jobs.graph.lineage import ColumnName, QueryLineage, lineage_of
from spark_jobs.graph.manifest import GoldEntry, Manifest, SilverEntry, SourceEntry
from spark_jobs.names import Layer, TableName

# A view's query changes with its definition only, and its attempts are many.
_lineage = lru_cache(maxsize=1024)(lineage_of)


def column_lineage(
    manifest: Manifest, entry: GoldEntry, *, place: Callable[[TableName], tuple[str, str]]
) -> facet.ColumnLineageDatasetFacet:
    """What each column is computed from, and what decides which rows there are.

    Args:
        manifest: tells how columns are spelled: a resolved query has lower case.
        entry: the view.
        place: namespace and name of a table's dataset.
    """
    found = _lineage(entry.query)

    def field(column: ColumnName, kind: str, subtype: str | None = None) -> facet.InputField:
        table = TableName.parse(column.table)
        return facet.InputField(
            *place(table),
            _spelled(manifest, table, column.column),
            [facet.Transformation(kind, subtype)],
        )

    return facet.ColumnLineageDatasetFacet(
        fields={
            name: facet.Fields([field(one, "DIRECT", _subtype(found, name)) for one in origins])
            for name, origins in found.columns.items()
        },
        dataset=[field(one, "INDIRECT") for one in found.rows],
    )


def _subtype(found: QueryLineage, name: str) -> str | None:
    """Of a computed column the lineage does not say how it is computed."""
    return "IDENTITY" if name in found.copies else None


def _spelled(manifest: Manifest, table: TableName, column: str) -> str:
    match table.layer:
        case Layer.BRONZE:
            entry: SourceEntry | SilverEntry | GoldEntry | None = manifest.sources.get(table.name)
        case Layer.SILVER:
            entry = manifest.silver.get(table.name)
        case Layer.GOLD:
            entry = manifest.gold.get(table.name)
    names = {one.name.lower(): one.name for one in entry.columns} if entry else {}
    return names.get(column.lower(), column)
