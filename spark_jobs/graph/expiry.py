"""Compiles the ``ttl`` of a silver table, and checks it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from spark_jobs.definitions.durations import duration_text
from spark_jobs.definitions.errors import KeyNotApplicableError, UnexpectedValueError
from spark_jobs.definitions.models import SilverHeader
from spark_jobs.definitions.project import SilverDefinition
from spark_jobs.definitions.vocabulary import OnExpiry
from spark_jobs.errors import LakehouseError
from spark_jobs.graph.errors import KeyNotInOutputError
from spark_jobs.graph.manifest import Column, Expiry
from spark_jobs.graph.scd2 import stores_history

_TIMES = ("timestamp", "timestamp_ntz", "date")
_DAY = timedelta(days=1)


def expiry_of(
    definition: SilverDefinition, columns: Sequence[Column], *, time: str | None
) -> Expiry | None:
    """The expiry of a valid declaration; None if rows never expire.

    Args:
        definition: a silver table.
        columns: columns of its SELECT.
        time: the selected column with the source's event time, if any.
    """
    header = definition.header
    if header is None or header.ttl is None:
        return None
    column = _column(header, columns, time)
    return Expiry(column=column.name, days=header.ttl // _DAY) if column else None


def check_expiry(
    definition: SilverDefinition, columns: Sequence[Column], *, time: str | None
) -> Iterator[LakehouseError]:
    """Report problems of the expiry; for the arguments see ``expiry_of``."""
    header, places = definition.header, definition.places
    subject = f'silver table "{definition.name}"'
    if header is None:
        return
    if header.ttl is None:
        for key in ("expire_by", "on_expiry"):
            if getattr(header, key):
                reason = 'without "ttl" no row expires'
                yield KeyNotApplicableError(subject, key, reason, location=places.of(key))
        return
    if stores_history(definition):
        yield KeyNotApplicableError(
            subject,
            "ttl",
            "SCD type 2 rows are recomputed from all changes of a key, so none of them may expire",
            'Remove "ttl", or give a table of current rows over the same source a "ttl".',
            location=places.of("ttl"),
        )
    if header.on_expiry is OnExpiry.KEEP:
        yield UnexpectedValueError(
            subject,
            "on_expiry",
            "with 'keep' a view would hold rows that its SQL does not give, and the next full "
            "refresh would lose them",
            'Write "retract". Views that shall keep what expires here can read another silver '
            'table over the same source, of fewer columns and without "ttl".',
            location=places.value_of("on_expiry"),
        )
    if header.ttl % _DAY:
        yield UnexpectedValueError(
            subject,
            "ttl",
            f"{duration_text(header.ttl.total_seconds())} are not whole days",
            'Write days or weeks, for example "90 days".',
            location=places.value_of("ttl"),
        )
    yield from _check_column(definition, header, columns, time)


def _check_column(
    definition: SilverDefinition, header: SilverHeader, columns: Sequence[Column], time: str | None
) -> Iterator[LakehouseError]:
    subject, places = f'silver table "{definition.name}"', definition.places
    key = "expire_by" if header.expire_by else "ttl"
    place = places.value_of(key)
    column = _column(header, columns, time)
    if column is None and header.expire_by:
        names = [one.name for one in columns]
        yield KeyNotInOutputError(subject, key, header.expire_by, names, location=place)
    elif column is None:
        yield UnexpectedValueError(
            subject,
            key,
            "the column with the time is not known",
            'Name a column of the SELECT with "expire_by", or select the '
            '"event_time" of its source.',
            location=place,
        )
    elif column.type not in _TIMES:
        yield UnexpectedValueError(
            subject,
            key,
            f"{column.name!r} is not a TIMESTAMP or DATE column",
            'Name such a column of the SELECT with "expire_by"; CAST a column if needed.',
            location=place,
        )


def _column(header: SilverHeader, columns: Sequence[Column], time: str | None) -> Column | None:
    wanted = (header.expire_by or time or "").lower()
    return next((one for one in columns if one.name.lower() == wanted), None)
