"""Compiles sinks: each has a unique name, a unique target, and keys of its table's rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from spark_jobs.definitions.errors import UnexpectedValueError
from spark_jobs.definitions.models import (
    CassandraSinkFile,
    KafkaSinkFile,
    PostgresSinkFile,
    RedisSinkFile,
    SinkFile,
)
from spark_jobs.definitions.project import Definitions, GoldDefinition, SilverDefinition
from spark_jobs.definitions.vocabulary import SinkSystem
from spark_jobs.errors import LakehouseError, Location
from spark_jobs.graph.errors import (
    DuplicateSinkError,
    KeyNotInOutputError,
    SinkKeysError,
    SinkTargetError,
)
from spark_jobs.graph.manifest import ApplyMode, GoldEntry, SilverEntry, SinkEntry, SourceEntry
from spark_jobs.names import (
    CASSANDRA_NAME,
    IDENTIFIER,
    INTERNAL_TOPIC,
    REDIS_PREFIX,
    RESERVED_DIRECTORY_PREFIX,
    TOPIC,
)

_SYSTEMS = ", ".join(SinkSystem)
# Sinks store their watermarks here; see the package ``sinks``.
_RESERVED = "tidemark"
_SYSTEM_SCHEMAS = ("pg_", "information_schema", _RESERVED)
Declared = KafkaSinkFile | PostgresSinkFile | RedisSinkFile | CassandraSinkFile


@dataclass(frozen=True)
class _Place:
    """One entry of ``sinks``, with the owner and locations for messages."""

    owner: SilverDefinition | GoldDefinition
    at: int
    system: SinkSystem
    kind: str

    @property
    def subject(self) -> str:
        return f'{self.kind} "{self.owner.name}": {self.system} sink'

    def of(self, *path: str | int) -> Location:
        return self.owner.places.value_of("sinks", self.at, self.system.value, *path)


def compile_sinks(
    definitions: Definitions,
    sources: Mapping[str, SourceEntry],
    silver: Mapping[str, SilverEntry],
    gold: Mapping[str, GoldEntry],
    problems: list[LakehouseError],
) -> dict[str, SinkEntry]:
    """The sinks of all tables that compiled, by name.

    Args:
        definitions: the project's files.
        sources: entries by name.
        silver: entries by name.
        gold: entries by name.
        problems: collects the errors.
    """
    topics = {source.topic: source.file for source in sources.values() if source.topic}
    found: list[tuple[SinkEntry, _Place]] = []
    for owner, entry, kind in _tables(definitions, silver, gold):
        for at, declared in enumerate(owner.header.sinks if owner.header else ()):
            chosen = _chosen(declared, owner, at, kind, problems)
            if chosen is None or entry is None:
                continue
            place = _Place(owner, at, chosen[0], kind)
            problems += _check_target(chosen[1], place, topics)
            keys = _keys(chosen[1], entry, place, problems)
            found.append((_entry(chosen[1], entry, place, keys), place))
    problems += _repeated(found)
    return {sink.name: sink for sink, _ in sorted(found, key=lambda one: one[0].name)}


def _tables(
    definitions: Definitions,
    silver: Mapping[str, SilverEntry],
    gold: Mapping[str, GoldEntry],
) -> Iterator[tuple[SilverDefinition | GoldDefinition, SilverEntry | GoldEntry | None, str]]:
    for name, table in definitions.silver.items():
        yield table, silver.get(name), "silver table"
    for name, view in definitions.gold.items():
        yield view, gold.get(name), "gold view"


def unique_key(entry: SilverEntry | GoldEntry) -> tuple[str, ...]:
    """The columns that identify a table's rows, as far as known."""
    if isinstance(entry, GoldEntry):
        return entry.maintenance.key if entry.maintenance else ()
    if entry.apply is ApplyMode.UPSERT:
        return entry.keys
    return (entry.event_id,) if entry.event_id else ()


def _chosen(
    declared: SinkFile,
    owner: SilverDefinition | GoldDefinition,
    at: int,
    kind: str,
    problems: list[LakehouseError],
) -> tuple[SinkSystem, Declared] | None:
    """The single system that an entry names."""
    place = owner.places.value_of("sinks", at)
    subject = f'{kind} "{owner.name}"'
    named = [(one, value) for one in SinkSystem if (value := getattr(declared, one)) is not None]
    if len(named) != 1:
        problem = f"it names {' and '.join(one for one, _ in named) or 'no system'}"
        hint = f"Write one of {_SYSTEMS} in each entry: '- kafka: {{topic: ...}}'."
        problems.append(UnexpectedValueError(subject, "sinks", problem, hint, location=place))
        return None
    return named[0]


def _check_target(
    declared: Declared, place: _Place, topics: Mapping[str, str]
) -> Iterator[LakehouseError]:
    subject = place.subject
    if declared.name is not None and not IDENTIFIER.fullmatch(declared.name):
        hint = "Use up to 63 lower-case letters, digits and underscores, a letter first."
        yield SinkTargetError(subject, "name", declared.name, hint=hint, location=place.of("name"))
    if isinstance(declared, KafkaSinkFile) and declared.topic in topics:
        yield DuplicateSinkError(
            subject,
            f'topic "{declared.topic}"',
            first=topics[declared.topic],
            location=place.of("topic"),
        )
        return
    key, target, hint = _target(declared)
    if hint:
        yield SinkTargetError(subject, key, target, hint=hint, location=place.of(key))


def _target(declared: Declared) -> tuple[str, str, str]:
    """The key that names a sink's target, the target, and a hint if it is invalid."""
    match declared:
        case KafkaSinkFile(topic=topic):
            right = TOPIC.fullmatch(topic) and not topic.startswith(RESERVED_DIRECTORY_PREFIX)
            hint = 'Use letters, digits, ".", "_" and "-", and no "_" first.'
            if right and INTERNAL_TOPIC.fullmatch(topic):
                right, hint = False, "Kafka Connect uses this topic: choose another name."
            return "topic", topic, "" if right else hint
        case PostgresSinkFile(table=table):
            parts = table.split(".")
            right = len(parts) <= 2 and all(map(IDENTIFIER.fullmatch, parts))
            reserved = len(parts) == 2 and parts[0].startswith(_SYSTEM_SCHEMAS)
            hint = (
                "Write schema.table, each of up to 63 lower-case letters, digits and "
                "underscores; the schema is none of the system's, nor tidemark."
            )
            return "table", table, "" if right and not reserved else hint
        case RedisSinkFile(prefix=prefix):
            right = REDIS_PREFIX.fullmatch(prefix) and not prefix.startswith(_RESERVED)
            hint = (
                'Use letters, digits, "_", ".", ":" and "-", at most 100 of them, and '
                f'start with another word than "{_RESERVED}".'
            )
            if _RESERVED.startswith(prefix):
                # The keys of the watermarks begin with it.
                right, hint = False, f'Use a prefix with which "{_RESERVED}" does not start.'
            return "prefix", prefix, "" if right else hint
        case CassandraSinkFile(table=table):
            parts = table.split(".")
            right = len(parts) == 2 and all(map(CASSANDRA_NAME.fullmatch, parts))
            reserved = table.startswith("system") or parts[-1].startswith(_RESERVED)
            hint = (
                "Write keyspace.table, each of up to 48 lower-case letters, digits and "
                'underscores; the keyspace does not start with "system", nor the table with '
                f'"{_RESERVED}".'
            )
            return "table", table, "" if right and not reserved else hint


def _keys(
    declared: Declared,
    entry: SilverEntry | GoldEntry,
    place: _Place,
    problems: list[LakehouseError],
) -> tuple[str, ...]:
    """The declared keys in the table's spelling, or the table's own."""
    known = unique_key(entry)
    if not declared.keys:
        if not known:
            problem = "no unique key of the table is known"
            hint = 'Name the columns that do: "keys: [...]".'
            problems.append(SinkKeysError(place.subject, problem, hint=hint, location=place.of()))
        return known
    spelled = {column.name.lower(): column.name for column in entry.columns}
    for at, key in enumerate(declared.keys):
        if key.lower() not in spelled:
            names = list(spelled.values())
            location = place.of("keys", at)
            problems.append(
                KeyNotInOutputError(place.subject, "keys", key, names, location=location)
            )
            return known
    keys = tuple(dict.fromkeys(spelled[key.lower()] for key in declared.keys))
    if known and not {key.lower() for key in known} <= {key.lower() for key in keys}:
        problem = f"rows that share {', '.join(keys)} can be several"
        hint = f"Its key is {', '.join(known)}: name these columns, or remove keys."
        problems.append(SinkKeysError(place.subject, problem, hint=hint, location=place.of("keys")))
    return keys


def _entry(
    declared: Declared,
    entry: SilverEntry | GoldEntry,
    place: _Place,
    keys: tuple[str, ...],
) -> SinkEntry:
    match declared:
        case KafkaSinkFile():
            target = declared.topic
        case PostgresSinkFile():
            target = declared.table if "." in declared.table else f"public.{declared.table}"
        case RedisSinkFile():
            target = declared.prefix
        case CassandraSinkFile():
            target = declared.table
    return SinkEntry(
        name=declared.name or f"{entry.name}_{place.system}"[:63],
        table=str(entry.table_name),
        system=place.system,
        target=target,
        keys=keys,
        columns=tuple(column.name for column in entry.columns),
        format=declared.format if isinstance(declared, KafkaSinkFile | RedisSinkFile) else None,
        file=entry.file,
    )


def _repeated(found: list[tuple[SinkEntry, _Place]]) -> Iterator[LakehouseError]:
    """Sinks whose name or target an earlier one has."""
    for at, (sink, place) in enumerate(found):
        for other, _ in found[:at]:
            if sink.name == other.name:
                yield DuplicateSinkError(
                    place.subject,
                    f'the name "{sink.name}"',
                    first=other.file,
                    location=place.of("name"),
                )
            if sink.system is other.system and _meet(sink, other):
                yield DuplicateSinkError(
                    place.subject, f'"{sink.target}"', first=other.file, location=place.of()
                )


def _meet(one: SinkEntry, other: SinkEntry) -> bool:
    """Whether two sinks of a system overlap; a Redis prefix contains longer ones."""
    if one.system is SinkSystem.REDIS:
        return one.target.startswith(other.target) or other.target.startswith(one.target)
    return one.target == other.target
