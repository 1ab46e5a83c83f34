"""SCD type 2 tables: their additional columns, and checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from spark_jobs.definitions.errors import KeyNotApplicableError, UnexpectedValueError
from spark_jobs.definitions.project import SilverDefinition
from spark_jobs.errors import LakehouseError
from spark_jobs.graph.errors import DuplicateColumnError
from spark_jobs.graph.manifest import Column
from spark_jobs.names import HistoryColumn

HISTORY_COLUMNS = (
    Column(
        name=str(HistoryColumn.VALID_FROM),
        type="timestamp",
        description="The first moment at which the row held.",
        required=True,
    ),
    Column(
        name=str(HistoryColumn.VALID_TO),
        type="timestamp",
        description="The first moment at which the row held no more; NULL while it holds.",
    ),
)
_KEY = "stored_as_scd_type"
_TIMES = ("timestamp", "date")


def stores_history(definition: SilverDefinition) -> bool:
    """Whether a header asks for SCD type 2."""
    return definition.header is not None and definition.header.stored_as_scd_type == 2


def check_history(
    definition: SilverDefinition, named: Sequence[str], typed: Mapping[str, str], *, upsert: bool
) -> Iterator[LakehouseError]:
    """Report problems of an SCD type 2 table.

    Args:
        definition: a silver table with ``stored_as_scd_type: 2``.
        named: columns of its SELECT.
        typed: types of the columns that it reads, by name.
        upsert: whether its source sends changes.
    """
    subject, places = f'silver table "{definition.name}"', definition.places
    if not upsert:
        reason = "its source's events are appended"
        yield KeyNotApplicableError(subject, _KEY, reason, location=places.of(_KEY))
        return
    for name in named:
        if name.lower() in set(HistoryColumn):
            yield DuplicateColumnError(subject, name, location=places.of(_KEY))
    order = definition.header.sequence_by if definition.header else None
    if order and typed.get(order) not in _TIMES:
        yield UnexpectedValueError(
            subject,
            "sequence_by",
            f"{order!r} is not a TIMESTAMP or DATE column, but SCD type 2 rows start at its value",
            'Name such a column, or remove "sequence_by": rows are then valid from the moment at '
            "which the source committed them.",
            location=places.value_of("sequence_by"),
        )
