"""A view's column lineage as an OpenLineage facet."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from openlineage.client.facet_v2 import column_lineage_dataset as facet

from spark_jobs.graph.lineage import ColumnName, QueryLineage, lineage_of
from spark_jobs.graph.manifest import GoldEntry, Manifest, SilverEntry, SourceEntry
from spark_jobs.names import Layer, TableName

# Cached: a view has many attempts, and its query changes only with its definition.
_lineage = lru_cache(maxsize=1024)(lineage_of)


def column_lineage(
    manifest: Manifest, entry: GoldEntry, *, place: Callable[[TableName], tuple[str, str]]
) -> facet.ColumnLineageDatasetFacet:
    """The columns that each column is computed from, and those that filter or group rows.

    Args:
        manifest: has the spelling of column names: a resolved query is in lower case.
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
    """The kind of a transformation; None unless it is a copy."""
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
