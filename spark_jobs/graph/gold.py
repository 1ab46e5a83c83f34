"""Compiles a gold view: one SELECT over tables of the lakehouse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta

from sqlglot import exp

from spark_jobs.definitions.project import GoldDefinition
from spark_jobs.definitions.vocabulary import Strategy
from spark_jobs.errors import LakehouseError
from spark_jobs.graph.canonical import (
    canonical_query,
    fingerprint_of,
    output_columns,
    without_aliases,
)
from spark_jobs.graph.checks import check_functions, check_output, check_tables
from spark_jobs.graph.columns_read import read_of_tables
from spark_jobs.graph.contracts import check_typed
from spark_jobs.graph.described import described
from spark_jobs.graph.errors import (
    ForbiddenInputError,
    KeyNotInOutputError,
    NondeterministicError,
    StrictNotIncrementalError,
)
from spark_jobs.graph.functions import NONDETERMINISTIC, called_name, reads_clock
from spark_jobs.graph.maintained_query import maintained_query
from spark_jobs.graph.manifest import GoldEntry, Parts, SourceEntry
from spark_jobs.graph.parsing import SqlText
from spark_jobs.graph.parts import parts_of
from spark_jobs.graph.resolve import Schemas, resolve, unresolved
from spark_jobs.graph.revised_forms import revised_forms
from spark_jobs.graph.sql import table_nodes
from spark_jobs.graph.table_layout import check_layout, layout_columns
from spark_jobs.names import Layer, TableName


def check_gold(
    definition: GoldDefinition,
    tree: exp.Query,
    sources: Mapping[str, SourceEntry],
    declared: frozenset[TableName],
) -> Iterator[LakehouseError]:
    """Report problems of a view, except those of its columns.

    Args:
        definition: the view.
        tree: its parsed query.
        sources: all sources that compiled, by name.
        declared: all declared tables.
    """
    subject = f'gold view "{definition.name}"'
    text = SqlText(definition.file, definition.padded)
    yield from check_tables(tree, declared, text, subject)
    yield from _check_inputs(tree, sources, text, subject)
    yield from check_functions(tree, text, subject)
    yield from _check_determined(tree, text, subject)


def compile_gold(
    definition: GoldDefinition,
    tree: exp.Query,
    schemas: Schemas,
    problems: list[LakehouseError],
    *,
    keys: Mapping[str, frozenset[str]] | None = None,
) -> GoldEntry | None:
    """The entry of a view; None if it has problems or its inputs do not compile.

    ``tier``, ``upstream`` and ``downstream`` are filled in later, from the whole graph.

    Args:
        definition: the view.
        tree: its parsed query.
        schemas: columns of the tables that compiled.
        problems: collects the view's errors.
        keys: columns that identify a table's rows, by ``layer.name``, if known.
    """
    subject = f'gold view "{definition.name}"'
    text = SqlText(definition.file, definition.padded)
    problems += check_output(tree, schemas, text, subject)
    if not set(inputs_of(tree)) <= schemas.keys():
        # The problem is reported for the table's own file.
        problems += unresolved(tree, schemas, text, subject)
        return None
    resolved = resolve(tree, schemas, text, subject)
    problems += resolved.problems
    header = definition.header
    if header is None or resolved.problems or any(one.is_star for one in tree.selects):
        return None
    columns = described(
        output_columns(tree, resolved.tree),
        header,
        definition.places,
        subject=subject,
        problems=problems,
    )
    names = [column.name for column in columns]
    for at, column in enumerate(header.grain):
        if column.lower() not in {name.lower() for name in names}:
            place = definition.places.value_of("grain", at)
            problems.append(KeyNotInOutputError(subject, "grain", column, names, location=place))
    problems += check_typed(header, columns, definition.places, subject)
    problems += check_layout(header, columns, definition.places, subject)
    partitions = layout_columns(header, "partition_by", columns)
    inputs = inputs_of(tree)
    types = {
        str(table): {name.lower(): kind for name, kind in schemas.get(table, {}).items()}
        for table in inputs
    }
    found = maintained_query(canonical_query(tree, resolved.tree), types=types, keys=keys)
    query, maintenance, obstacle = found.text, found.maintenance, found.obstacle
    if obstacle is not None and header.strategy is Strategy.STRICT:
        problems.append(
            StrictNotIncrementalError(
                subject,
                obstacle.obstacle,
                obstacle.text,
                obstacle.suggestion,
                location=definition.places.value_of("strategy"),
            )
        )
    known = _types_read(query, {str(table): schemas.get(table, {}) for table in inputs})
    more = (*_partitions(partitions), *revised_forms(resolved.tree))
    return GoldEntry(
        name=definition.name,
        description=header.description.strip(),
        owner=header.owner,
        tags=header.tags,
        refresh=header.refresh,
        every_seconds=_seconds(header.every),
        schedule=header.schedule,
        time_zone=header.time_zone or "UTC",
        freshness_seconds=_seconds(header.freshness),
        verify_seconds=_seconds(header.verify),
        consistency=header.consistency,
        grain=header.grain,
        strategy=header.strategy,
        contract=header.contract,
        contract_version=header.contract_version or 1,
        partition_by=partitions,
        cluster_by=layout_columns(header, "cluster_by", columns),
        maintenance=maintenance,
        sql=definition.sql,
        query=query,
        breaks_ties=found.breaks_ties,
        inputs=tuple(str(table) for table in inputs),
        columns=columns,
        fingerprint=fingerprint_of(without_aliases(found.tree), known, *more),
        parts=_parts(query, known, more) if maintenance.key else None,
        deterministic=True,
        reads_clock=reads_clock(tree),
        file=definition.file,
        tier=0,
    )


def _parts(
    query: str, types: Mapping[str, Mapping[str, str]], more: tuple[str, ...]
) -> Parts | None:
    """The digests of a view; other partitions need all of its rows, as other rows do."""
    parts = parts_of(query, types)
    if parts is None or not more:
        return parts
    return parts.model_copy(update={"rows": fingerprint_of(parts.rows, {}, *more)})


def _partitions(columns: tuple[str, ...]) -> tuple[str, ...]:
    """What partition columns add to a fingerprint: they change only by a rewrite."""
    return ("partition_by", *columns) if columns else ()


def _types_read(query: str, types: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """Types of the columns that a query reads; other columns cannot affect it."""
    read = read_of_tables(query)
    return {
        table: {
            name: kind
            for name, kind in columns.items()
            if (only := read.get(table)) is None or name.lower() in only
        }
        for table, columns in types.items()
    }


def inputs_of(tree: exp.Query) -> tuple[TableName, ...]:
    """The tables that a view reads, sorted and unique."""
    found = {
        TableName(Layer(node.db.lower()), node.name.lower())
        for node in table_nodes(tree)
        if node.db.lower() in set(Layer)
    }
    return tuple(sorted(found))


def _check_inputs(
    tree: exp.Query, sources: Mapping[str, SourceEntry], text: SqlText, subject: str
) -> Iterator[LakehouseError]:
    for node in table_nodes(tree):
        source = sources.get(node.name.lower())
        if node.db.lower() != Layer.BRONZE or source is None:
            continue
        if source.format.streamed:
            yield ForbiddenInputError(
                subject,
                f"bronze.{source.name}",
                "it holds records as they were received, repeated and untyped",
                f"Read a silver table over it: add sql/silver/{source.name}.sql.",
                location=text.of(node),
            )


def _check_determined(tree: exp.Query, text: SqlText, subject: str) -> Iterator[LakehouseError]:
    for call in tree.find_all(exp.Func):
        name = called_name(call)
        if name in NONDETERMINISTIC or isinstance(call, exp.Rand | exp.Randn | exp.Uuid):
            name = name or call.sql_name().lower()
            yield NondeterministicError(
                subject,
                f"it calls {name}",
                "Take the value from a column, or from a hash of the row's keys.",
                location=text.of(call),
            )
    for sample in tree.find_all(exp.TableSample):
        yield NondeterministicError(
            subject,
            "it samples a table",
            "Filter by a hash of a key: WHERE pmod(xxhash64(key), 10) = 0.",
            location=text.of(sample),
        )
    for query in tree.find_all(exp.Query):
        limit = query.args.get("limit") or query.args.get("offset")
        if limit is not None and not query.args.get("order"):
            yield NondeterministicError(
                subject,
                "LIMIT without ORDER BY takes any rows",
                "Add an ORDER BY that leaves no ties.",
                location=text.of(limit),
            )


def _seconds(length: timedelta | None) -> int | None:
    return int(length.total_seconds()) if length else None
