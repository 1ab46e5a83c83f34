"""Columns with personal data: the declared ones, and those computed from them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from spark_jobs.definitions.marked import Places
from spark_jobs.definitions.models import GoldHeader, SilverHeader
from spark_jobs.errors import LakehouseError
from spark_jobs.graph.errors import UnknownColumnError
from spark_jobs.graph.lineage import lineage_of
from spark_jobs.graph.manifest import Column, GoldEntry, Manifest, SilverEntry, SourceEntry
from spark_jobs.names import BronzeColumn

# How an error of Spark begins that stopped a refresh; Spark's own conditions follow.
_OF_SPARK: Final = "[QUERY_FAILED]"
_CONDITION: Final = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]")
# Bronze columns that contain the record.
_RECORD = frozenset({BronzeColumn.KEY.value, BronzeColumn.VALUE.value, BronzeColumn.HEADERS.value})


def personal_columns(entry: SourceEntry | SilverEntry | GoldEntry) -> frozenset[str]:
    """The columns of a stored table that contain personal data, in lower case.

    In bronze the whole record is personal if one of its fields is.
    """
    marked = frozenset(column.name.lower() for column in entry.columns if column.pii)
    if isinstance(entry, SourceEntry) and entry.format.streamed:
        return _RECORD if marked else frozenset()
    return marked


def reads_personal(manifest: Manifest, view: GoldEntry) -> bool:
    """Whether a table that a view reads contains personal data."""
    layers = (manifest.sources, manifest.silver, manifest.gold)
    inputs = (one for layer in layers for one in layer.values())
    return any(str(one.table_name) in view.inputs and personal_columns(one) for one in inputs)


def without_values(error: str) -> str:
    r"""An error without what Spark says, which may hold the value that it could not convert.

    >>> without_values("stage: it failed [QUERY_FAILED]\n  Detail: [CAST_INVALID_INPUT] 'ann'")
    'stage: it failed [QUERY_FAILED] (CAST_INVALID_INPUT)'
    """
    ours, mark, told = error.partition(_OF_SPARK)
    named = ", ".join(dict.fromkeys(_CONDITION.findall(told)))
    return f"{ours}{mark}" + (f" ({named})" if named else "")


def with_personal(
    columns: tuple[Column, ...],
    query: str,
    header: GoldHeader | SilverHeader | None,
    known: Mapping[str, tuple[Column, ...]],
) -> tuple[Column, ...]:
    """The columns of a SELECT, marked if they contain personal data.

    A column computed from a marked one is marked too, unless the header lists it in ``not_pii``:
    only a person can decide that, for instance, the last digit of a number is harmless.

    Args:
        columns: output columns of the SELECT.
        query: the qualified SELECT.
        header: of its file.
        known: columns of the relations that it reads, by their name in the query.
    """
    personal = {
        (table, column.name.lower())
        for table, found in known.items()
        for column in found
        if column.pii
    }
    origins = {name.lower(): found for name, found in lineage_of(query).columns.items()}
    added = {name.lower() for name in header.pii} if header else set()
    cleared = {name.lower() for name in header.not_pii} if header else set()

    def holds(name: str) -> bool:
        read = {(one.table, one.column.lower()) for one in origins.get(name, ())}
        return name in added or (bool(read & personal) and name not in cleared)

    return tuple(
        column.model_copy(update={"pii": holds(column.name.lower())}) for column in columns
    )


def check_personal(
    header: GoldHeader | SilverHeader | None,
    columns: tuple[Column, ...],
    places: Places,
    subject: str,
) -> Iterator[LakehouseError]:
    """Report names in ``pii`` and ``not_pii`` that the SELECT does not have."""
    names = [column.name for column in columns]
    lower = {name.lower() for name in names}
    for key in ("pii", "not_pii"):
        for at, name in enumerate(getattr(header, key, ())):
            if name.lower() not in lower:
                place = places.value_of(key, at)
                yield UnknownColumnError(subject, name, names, location=place)
