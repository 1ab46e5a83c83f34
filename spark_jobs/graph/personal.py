"""Which columns hold personal data: the declared ones, and what is computed from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from spark_jobs.definitions.marked import Places
from spark_jobs.definitions.models import GoldHeader, SilverHeader
from spark_jobs.errors import LakehouseError
from spark_jobs.graph.errors import UnknownColumnError
from spark_jobs.graph.lineage import lineage_of
from spark_jobs.graph.manifest import Column, GoldEntry, SilverEntry, SourceEntry
from spark_jobs.names import BronzeColumn

# What a bronze table holds of a record, whole.
_RECORD = frozenset({BronzeColumn.KEY.value, BronzeColumn.VALUE.value, BronzeColumn.HEADERS.value})


def personal_columns(entry: SourceEntry | SilverEntry | GoldEntry) -> frozenset[str]:
    """The columns of a stored table that hold personal data, in lower case.

    A bronze table holds records whole: where one field is personal, the record is.
    """
    marked = frozenset(column.name.lower() for column in entry.columns if column.pii)
    if isinstance(entry, SourceEntry) and entry.format.streamed:
        return _RECORD if marked else frozenset()
    return marked


def with_personal(
    columns: tuple[Column, ...],
    query: str,
    header: GoldHeader | SilverHeader | None,
    known: Mapping[str, tuple[Column, ...]],
) -> tuple[Column, ...]:
    """The columns of a SELECT, marked where they hold personal data.

    A column computed from one that does is marked too, unless the header says ``not_pii``: the
    last digit of a number tells nobody, and only a person can say so.

    Args:
        columns: what the SELECT gives out.
        query: the SELECT, qualified.
        header: of its file.
        known: the columns of the relations that it reads, as the query names them.
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
    """Names in ``pii`` and ``not_pii`` that the SELECT does not give out."""
    names = [column.name for column in columns]
    lower = {name.lower() for name in names}
    for key in ("pii", "not_pii"):
        for at, name in enumerate(getattr(header, key, ())):
            if name.lower() not in lower:
                place = places.value_of(key, at)
                yield UnknownColumnError(subject, name, names, location=place)
