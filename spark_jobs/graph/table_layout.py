"""Checks ``partition_by`` and ``cluster_by`` of a header against the columns of the table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from spark_jobs.definitions.errors import KeyNotApplicableError
from spark_jobs.definitions.marked import Places
from spark_jobs.definitions.models import GoldHeader, SilverHeader
from spark_jobs.errors import LakehouseError, SubjectError
from spark_jobs.graph.errors import KeyNotInOutputError
from spark_jobs.graph.manifest import Column

# Delta's limits: columns to cluster by, and leading columns of which it stores statistics.
_MOST_CLUSTERED: Final = 4
_WITH_STATISTICS: Final = 32
# Delta refuses values of these types in the path of a file.
_NOT_IN_PATHS: Final = ("array<", "map<", "struct<", "variant")
# Delta stores no lowest and highest value of these types.
_WITHOUT_BOUNDS: Final = (*_NOT_IN_PATHS, "boolean", "binary")
_TEXTS: Final = ("string", "char", "varchar")
_KEYS: Final = ("partition_by", "cluster_by")


class LayoutColumnError(SubjectError):
    """A table cannot be partitioned or clustered by a column."""

    condition = "LAYOUT_COLUMN"
    key: str
    column: str
    problem: str
    hint: str
    primary = '{subject} cannot have "{column}" in "{key}": {problem}'


def layout_columns(
    header: GoldHeader | SilverHeader | None, key: str, columns: Sequence[Column]
) -> tuple[str, ...]:
    """The columns of ``partition_by`` or ``cluster_by`` as the SELECT spells them."""
    named: tuple[str, ...] = () if header is None else getattr(header, key)
    spelled = {one.name.lower(): one.name for one in columns}
    return tuple(spelled.get(name.lower(), name) for name in named)


def check_layout(
    header: GoldHeader | SilverHeader | None,
    columns: Sequence[Column],
    places: Places,
    subject: str,
) -> Iterator[LakehouseError]:
    """Report columns that do not exist, or that Delta cannot partition or cluster by."""
    if header is None:
        return
    if header.partition_by and header.cluster_by:
        yield KeyNotApplicableError(
            subject,
            "cluster_by",
            'it has the key "partition_by"',
            "Keep one of the two: Delta clusters only tables without partitions.",
            location=places.of("cluster_by"),
        )
    names = [one.name for one in columns]
    for key in _KEYS:
        for at, name in enumerate(getattr(header, key)):
            place = places.value_of(key, at)
            position = next((i for i, one in enumerate(names) if one.lower() == name.lower()), None)
            if position is None:
                yield KeyNotInOutputError(subject, key, name, names, location=place)
            elif found := _problem(header, key, at, columns=columns, position=position):
                problem, hint = found
                yield LayoutColumnError(subject, key, name, problem, hint, location=place)


def check_personal_paths(
    header: GoldHeader | SilverHeader | None,
    columns: Sequence[Column],
    places: Places,
    subject: str,
) -> Iterator[LayoutColumnError]:
    """Report partition columns with personal data: paths of files show their values.

    Args:
        header: of the table.
        columns: with inherited marks of personal data.
        places: of the header's values.
        subject: name of the declared table in messages.
    """
    personal = {one.name.lower() for one in columns if one.pii}
    for at, name in enumerate(header.partition_by if header else ()):
        if name.lower() in personal:
            problem = "it has personal data, which the paths of files would show"
            hint = "Use cluster_by, or mark the column in not_pii if it has none."
            place = places.value_of("partition_by", at)
            yield LayoutColumnError(subject, "partition_by", name, problem, hint, location=place)


def check_text_keys(
    header: SilverHeader | None,
    columns: Sequence[Column],
    keys: Sequence[str],
    places: Places,
    subject: str,
) -> Iterator[LayoutColumnError]:
    """Report partition columns that are a text and a key by which rows are found again.

    Delta stores an empty text of a partition column as NULL, so a row with one would not be found:
    its next change would be a second row, its deletion nothing.

    Args:
        header: of the table.
        columns: of the table.
        keys: columns by which a record finds its row.
        places: of the header's values.
        subject: name of the declared table in messages.
    """
    found = {key.lower() for key in keys}
    texts = {one.name.lower() for one in columns if one.type.startswith(_TEXTS)} & found
    for at, name in enumerate(header.partition_by if header else ()):
        if name.lower() in texts:
            problem = "it is a key, and Delta stores an empty text of a partition column as NULL"
            hint = "Use cluster_by, or partition by a column that is not a key."
            place = places.value_of("partition_by", at)
            yield LayoutColumnError(subject, "partition_by", name, problem, hint, location=place)


def _problem(
    header: GoldHeader | SilverHeader,
    key: str,
    at: int,
    *,
    columns: Sequence[Column],
    position: int,
) -> tuple[str, str] | None:
    """What is wrong with the column at ``position`` as the key's entry ``at``, and a hint."""
    column = columns[position]
    named = [one.lower() for one in getattr(header, key)]
    if named[at] in named[:at]:
        return "it is there twice", "Remove one of the two."
    if not column.type:
        hint = f"Write CAST(... AS BIGINT) AS {column.name}, with the type that you mean."
        return "its type does not follow from the SQL", hint
    if key == "partition_by":
        last = at == len(named) - 1
        return _cannot_part(column, left=len(columns) - len(set(named)), last=last)
    return _cannot_cluster(column, at, position)


def _cannot_part(column: Column, *, left: int, last: bool) -> tuple[str, str] | None:
    if column.type.startswith(_NOT_IN_PATHS):
        return f"its type is {column.type}", "Partition by a date or a text with few values."
    if last and not left:
        return "no column is left for the files", "Keep one column out of the key."
    return None


def _cannot_cluster(column: Column, at: int, position: int) -> tuple[str, str] | None:
    if column.type.startswith(_WITHOUT_BOUNDS):
        return f"its type is {column.type}", "Cluster by numbers, dates, times or texts."
    if at >= _MOST_CLUSTERED:
        return "Delta clusters by four columns at most", "Keep the columns that queries filter by."
    if position >= _WITH_STATISTICS:
        return (
            f"it is column {position + 1}, and Delta has statistics of the first 32",
            "Move it to the front of the SELECT.",
        )
    return None
