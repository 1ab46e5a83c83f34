"""Refuses changes that would lose data which cannot be recomputed."""

from __future__ import annotations

from collections.abc import Iterator

from spark_jobs.definitions.vocabulary import SourceFormat
from spark_jobs.definitions.widening import wider
from spark_jobs.deploy.errors import ChangeLosesDataError, SourceKindChangedError
from spark_jobs.errors import LakehouseError, Location
from spark_jobs.graph.databases import table_of
from spark_jobs.graph.manifest import Manifest, SilverEntry, SourceEntry

_SOURCE_REASONS = {
    "topic": "Its bronze table belongs to the position in the topic.",
    "format": "Records in bronze would be read in another format than they were sent.",
    "table": "Rows of two tables would be mixed up.",
    "keys": "Changes of one row would have different keys.",
}
_SILVER_REASONS = {
    "source": "Its rows come from the records of that source.",
    "keys": "Existing rows were applied by the old key, and cannot be identified by another one.",
    "apply": "Stored rows of one kind cannot be converted to the other.",
}


def refusals(before: Manifest, after: Manifest) -> Iterator[LakehouseError]:
    """All problems of a change."""
    for name in sorted(before.sources.keys() & after.sources.keys()):
        yield from _of_source(before.sources[name], after.sources[name])
    for name in sorted(before.silver.keys() & after.silver.keys()):
        yield from _of_silver(before.silver[name], after.silver[name])


def _of_source(before: SourceEntry, after: SourceEntry) -> Iterator[LakehouseError]:
    if before.format.of_file and after.format.of_file:
        # Each load reads the whole file, and replaces the table if it cannot compare the rows.
        return
    if before.format != after.format and not (before.format.streamed and after.format.streamed):
        yield _other_kind(before, after)
        return
    for field, why in _SOURCE_REASONS.items():
        was, now = _of_field(before, field), _of_field(after, field)
        if was != now:
            subject = f'source "{after.name}"'
            yield _loses(subject, field, was, now, why, name=after.name, file=after.file)


def _of_field(source: SourceEntry, field: str) -> object:
    if field == "table" and source.format is SourceFormat.DEBEZIUM:
        return table_of(source)
    found: object = getattr(source, field)
    return found


def _other_kind(before: SourceEntry, after: SourceEntry) -> SourceKindChangedError:
    """Only one of them is a topic, a file of the project or a table of another writer."""
    own = "records of its topic" if before.format.streamed else "rows of its file"
    external = before.format is SourceFormat.DELTA
    place = "in a table of another writer, not in the lake" if external else "in the lake"
    return SourceKindChangedError(
        f'source "{after.name}"',
        before.format.value,
        after.format.value,
        f"The {'rows' if external else own} are {place}; the new ones would need another table.",
        fresh=f"{after.name}_2",
        then="apply" if external else "apply; `tidemark drop` deletes its table",
        location=Location(after.file),
    )


def _of_silver(before: SilverEntry, after: SilverEntry) -> Iterator[LakehouseError]:
    name = str(after.table_name)
    for field, why in _SILVER_REASONS.items():
        was, now = getattr(before, field), getattr(after, field)
        if was != now:
            yield _loses(name, field, was, now, why, name=after.name, file=after.file)
    held = {column.name.lower(): column for column in before.columns}
    for column in after.columns:
        stored = held.get(column.name.lower(), column)
        if stored.name != column.name:
            what = f"the spelling of column {stored.name}"
            why = "The table has one column of this name, and keeps it as it is."
            yield _loses(
                name, what, stored.name, column.name, why, name=after.name, file=after.file
            )
        if stored.type != column.type and not wider(stored.type, column.type):
            what = f"the type of {column.name}"
            why = f"Not all stored values fit into {column.type}."
            yield _loses(
                name, what, stored.type, column.type, why, name=after.name, file=after.file
            )


def _loses(
    subject: str, what: str, was: object, now: object, why: str, *, name: str, file: str
) -> ChangeLosesDataError:
    return ChangeLosesDataError(
        subject,
        what,
        _shown(was),
        _shown(now),
        why,
        fresh=f"{name}_2",
        location=Location(file),
    )


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)
