"""Reads the project directory into typed declarations, and collects all problems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from spark_jobs.definitions.errors import (
    DuplicateTopicError,
    EmptyProjectError,
    UnexpectedValueError,
)
from spark_jobs.definitions.files import DeclaredFile, declared_files, stray_files
from spark_jobs.definitions.marked import Places
from spark_jobs.definitions.models import GoldHeader, SilverHeader, SourceFile
from spark_jobs.definitions.readers import read_gold, read_silver, read_source
from spark_jobs.definitions.suites import SuiteDefinition, read_suite
from spark_jobs.definitions.vocabulary import SourceFormat
from spark_jobs.errors import LakehouseError, Location, ProblemsError
from spark_jobs.names import TRANSACTION_SUFFIX, Layer, TableName


@dataclass(frozen=True)
class SourceDefinition:
    """A source file."""

    name: str
    file: str
    declared: SourceFile
    places: Places


@dataclass(frozen=True)
class SilverDefinition:
    """A silver file: its header, and its statement with the locations of the file."""

    name: str
    file: str
    header: SilverHeader | None
    places: Places
    sql: str
    # The file's text with a blank header. It is parsed, so that locations are those of the file.
    padded: str


@dataclass(frozen=True)
class GoldDefinition:
    """A gold file: its header, and its statement with the locations of the file."""

    name: str
    file: str
    header: GoldHeader | None
    places: Places
    sql: str
    padded: str


@dataclass(frozen=True)
class Definitions:
    """The declarations of all files. ``declared`` also has tables whose file has problems.

    Attributes:
        macros: the files of ``sql/macros/`` by name; ``ephemeral`` those of ``sql/ephemeral/``.
    """

    project_dir: Path
    sources: Mapping[str, SourceDefinition] = field(default_factory=dict)
    silver: Mapping[str, SilverDefinition] = field(default_factory=dict)
    gold: Mapping[str, GoldDefinition] = field(default_factory=dict)
    suites: Mapping[TableName, SuiteDefinition] = field(default_factory=dict)
    declared: frozenset[TableName] = frozenset()
    macros: Mapping[str, DeclaredFile] = field(default_factory=dict)
    ephemeral: Mapping[str, DeclaredFile] = field(default_factory=dict)


def load_definitions(project_dir: Path) -> Definitions:
    """Read every file of the project.

    Raises:
        ProblemsError: with all problems of all files.
    """
    definitions, problems = read_definitions(project_dir)
    if problems:
        raise ProblemsError(problems)
    return definitions


def read_definitions(project_dir: Path) -> tuple[Definitions, list[LakehouseError]]:
    """Read every file; returns the valid declarations, and the problems of the others."""
    problems: list[LakehouseError] = list(stray_files(project_dir))
    sources: dict[str, SourceDefinition] = {}
    silver: dict[str, SilverDefinition] = {}
    gold: dict[str, GoldDefinition] = {}
    declared: set[TableName] = set()

    for one in declared_files(project_dir, "sources", ("yml", "yaml"), problems):
        declared.add(TableName(Layer.BRONZE, one.name))
        found, place = read_source(one, problems)
        if found:
            sources[one.name] = SourceDefinition(one.name, one.file, found, place)
    for one in declared_files(project_dir, "sql/silver", ("sql",), problems):
        declared.add(TableName(Layer.SILVER, one.name))
        read = read_silver(one, problems)
        if read:
            silver[one.name] = SilverDefinition(
                one.name, one.file, read.header, read.places, read.sql, read.padded
            )
    for one in declared_files(project_dir, "sql/gold", ("sql",), problems):
        declared.add(TableName(Layer.GOLD, one.name))
        view = read_gold(one, problems)
        if view:
            gold[one.name] = GoldDefinition(
                one.name, one.file, view.header, view.places, view.sql, view.padded
            )
    suites = _suites(project_dir, problems)
    macros, ephemeral = (
        {one.name: one for one in declared_files(project_dir, folder, ("sql",), problems)}
        for folder in ("sql/macros", "sql/ephemeral")
    )

    if not any(table.layer is Layer.BRONZE for table in declared):
        problems.append(EmptyProjectError(str(project_dir)))
    problems += (*_repeated_topics(sources), *_transaction_topics(sources))
    definitions = Definitions(
        project_dir, sources, silver, gold, suites, frozenset(declared), macros, ephemeral
    )
    return definitions, problems


def _repeated_topics(sources: Mapping[str, SourceDefinition]) -> Iterator[LakehouseError]:
    first: dict[str, str] = {}
    for source in sources.values():
        topic = source.declared.topic
        if topic and topic in first:
            place: Location = source.places.value_of("topic")
            yield DuplicateTopicError(topic, first=first[topic], location=place)
        elif topic:
            first[topic] = source.file


def _transaction_topics(sources: Mapping[str, SourceDefinition]) -> Iterator[LakehouseError]:
    """Sources that read Debezium's transaction records of another source's database."""
    own = {
        topic.removesuffix(f".{source.declared.table}")
        if source.declared.table
        else topic.rsplit(".", 2)[0]
        for source in sources.values()
        if source.declared.format is SourceFormat.DEBEZIUM and (topic := source.declared.topic)
    }
    for source in sources.values():
        topic = source.declared.topic or ""
        if topic.endswith(TRANSACTION_SUFFIX) and topic.removesuffix(TRANSACTION_SUFFIX) in own:
            yield UnexpectedValueError(
                f'source "{source.name}"',
                "topic",
                f"{topic!r} is an internal topic",
                "Debezium writes transaction boundaries to it. Name a table's topic.",
                location=source.places.value_of("topic"),
            )


def _suites(project_dir: Path, problems: list[LakehouseError]) -> dict[TableName, SuiteDefinition]:
    suites: dict[TableName, SuiteDefinition] = {}
    for layer in (Layer.SILVER, Layer.GOLD):
        for one in declared_files(project_dir, f"expectations/{layer}", ("json",), problems):
            table = TableName(layer, one.name)
            suite, mistakes = read_suite(one.text, one.file, table)
            problems += mistakes
            if suite:
                suites[table] = suite
    return suites
