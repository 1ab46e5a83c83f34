"""Descriptions of columns: from the header, from SQL comments, or inherited from copied columns."""

from __future__ import annotations

from collections.abc import Mapping

from spark_jobs.definitions.deprecation import Deprecation
from spark_jobs.definitions.marked import Places
from spark_jobs.definitions.models import GoldHeader, OutputColumnFile, SilverHeader
from spark_jobs.errors import LakehouseError
from spark_jobs.graph.errors import UnknownColumnError
from spark_jobs.graph.lineage import lineage_of
from spark_jobs.graph.manifest import Column, GoldEntry
from spark_jobs.names import COLUMN


def described(
    columns: tuple[Column, ...],
    header: GoldHeader | SilverHeader | None,
    places: Places,
    *,
    subject: str,
    problems: list[LakehouseError],
) -> tuple[Column, ...]:
    """The columns of a SELECT with what its header says about them.

    Columns that the SELECT does not have are added to ``problems``.
    """
    words = _words(header)
    known = {column.name.lower(): column.name for column in columns}
    for name in words:
        if name.lower() not in known:
            place = places.of("columns", name)
            problems.append(UnknownColumnError(subject, name, list(known.values()), location=place))
        use = words[name].use or ""
        # One word is a column of the view; other texts may name another table.
        if COLUMN.fullmatch(use) and use.lower() not in known:
            place = places.value_of("columns", name, "use")
            problems.append(UnknownColumnError(subject, use, list(known.values()), location=place))
    lower = {name.lower(): one for name, one in words.items()}
    return tuple(
        _with(column, lower[column.name.lower()]) if column.name.lower() in lower else column
        for column in columns
    )


def _words(header: GoldHeader | SilverHeader | None) -> Mapping[str, OutputColumnFile]:
    match header:
        case GoldHeader():
            return header.columns
        case SilverHeader():
            return {
                name: OutputColumnFile(description=text) for name, text in header.columns.items()
            }
        case None:
            return {}


def _with(column: Column, said: OutputColumnFile) -> Column:
    described = " ".join(said.description.split()) if said.description else column.description
    gone = said.deprecated and Deprecation(day=said.deprecated, use=said.use)
    return column.model_copy(update={"description": described, "deprecation": gone})


def with_copied_words(entry: GoldEntry, known: Mapping[str, tuple[Column, ...]]) -> GoldEntry:
    """A view whose columns without a description inherit that of the column that they copy.

    Args:
        entry: the view.
        known: columns of the tables that it reads, by ``layer.name``.
    """
    if all(column.description for column in entry.columns):
        return entry
    words = {
        (table, column.name.lower()): column.description
        for table, columns in known.items()
        for column in columns
    }
    copies = {name.lower(): origin for name, origin in lineage_of(entry.query).copies.items()}
    columns = tuple(
        column.model_copy(update={"description": words.get((origin.table, origin.column.lower()))})
        if column.description is None and (origin := copies.get(column.name.lower()))
        else column
        for column in entry.columns
    )
    return entry.model_copy(update={"columns": columns})
