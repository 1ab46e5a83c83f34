"""Compiles a silver table: a projection and filter over one source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from spark_jobs.definitions.errors import KeyNotApplicableError
from spark_jobs.definitions.project import SilverDefinition
from spark_jobs.definitions.vocabulary import OnFailure, SourceFormat
from spark_jobs.errors import LakehouseError
from spark_jobs.graph.canonical import fingerprint_of, output_columns, without_aliases
from spark_jobs.graph.checks import check_functions, check_output, check_tables
from spark_jobs.graph.described import described
from spark_jobs.graph.dialect import to_sql
from spark_jobs.graph.errors import (
    ForbiddenInputError,
    KeyNotInOutputError,
    NondeterministicError,
    NotAProjectionError,
)
from spark_jobs.graph.expiry import check_expiry, expiry_of
from spark_jobs.graph.functions import NONDETERMINISTIC, aggregates, called_name, reads_clock
from spark_jobs.graph.key_errors import TableKeysDifferError
from spark_jobs.graph.manifest import (
    SOURCE_RELATION,
    ApplyMode,
    Column,
    SilverEntry,
    SourceEntry,
)
from spark_jobs.graph.parsing import SqlText, parse_select
from spark_jobs.graph.personal import check_personal, with_personal
from spark_jobs.graph.resolve import Schemas, resolve, unresolved
from spark_jobs.graph.scd2 import HISTORY_COLUMNS, check_history, stores_history
from spark_jobs.graph.sql import table_nodes
from spark_jobs.graph.table_layout import (
    check_layout,
    check_personal_paths,
    check_text_keys,
    layout_columns,
)
from spark_jobs.graph.typed_source import OPERATION_COLUMN, header_expression
from spark_jobs.names import Layer, TableName

_CLAUSES = {
    "joins": "a join",
    "group": "a GROUP BY",
    "having": "a HAVING",
    "distinct": "a DISTINCT",
    "order": "an ORDER BY",
    "limit": "a LIMIT",
    "offset": "an OFFSET",
    "laterals": "a LATERAL VIEW",
    "qualify": "a QUALIFY",
    "sort": "a SORT BY",
    "cluster": "a CLUSTER BY",
    "distribute": "a DISTRIBUTE BY",
    "with_": "a WITH",
}
_NODES: dict[type[exp.Expr], str] = {
    exp.Window: "a window function",
    exp.Subquery: "a subquery",
    exp.Exists: "a subquery",
    exp.Explode: "a generator",
    exp.Posexplode: "a generator",
    exp.Inline: "a generator",
}
_DELETES = f"{OPERATION_COLUMN} = 'd'"


def compile_silver(
    definition: SilverDefinition,
    sources: dict[str, SourceEntry],
    schemas: Schemas,
    declared: frozenset[TableName],
    problems: list[LakehouseError],
) -> SilverEntry | None:
    """The entry of a silver table; None if its columns are unknown.

    An entry may be returned despite problems, so that the views that read the table are checked in
    the same run.

    Args:
        definition: the table.
        sources: all sources that compiled, by name.
        schemas: columns of the tables that compiled.
        declared: all declared tables.
        problems: collects the table's errors.
    """
    subject = f'silver table "{definition.name}"'
    text = SqlText(definition.file, definition.padded)
    try:
        tree = parse_select(text)
    except LakehouseError as error:
        problems.append(error)
        return None
    found = list(check_tables(tree, declared, text, subject))
    found += _check_inputs(tree, sources, text, subject)
    found += check_functions(tree, text, subject)
    found += check_output(tree, schemas, text, subject)
    found += _check_shape(tree, text, subject)
    found += _check_determined(tree, text, subject)
    node = next(table_nodes(tree), None)
    source = sources.get(node.name.lower()) if node is not None else None
    if source is None or source.table_name not in schemas:
        # The problem is reported for the source's own file.
        problems += (*found, *unresolved(tree, schemas, text, subject))
        return None
    resolved = resolve(tree, schemas, text, subject)
    problems += (*found, *resolved.problems)
    if any(one.is_star for one in tree.selects):
        return None
    return _entry(definition, tree, resolved.tree, source, schemas=schemas, problems=problems)


def _entry(
    definition: SilverDefinition,
    tree: exp.Query,
    resolved: exp.Query,
    source: SourceEntry,
    *,
    schemas: Schemas,
    problems: list[LakehouseError],
) -> SilverEntry:
    header = definition.header
    subject = f'silver table "{definition.name}"'
    upsert = source.format is SourceFormat.DEBEZIUM
    copied = _copied_columns(tree)
    columns = described(
        output_columns(tree, resolved),
        header,
        definition.places,
        subject=subject,
        problems=problems,
    )
    named = [column.name for column in columns]
    wanted = header.keys if header else ()
    spelled = {name.lower(): name for name in named}
    keys = tuple(spelled.get(key.lower(), key) for key in wanted)
    keys = keys or tuple(copied.get(key.lower(), key) for key in source.keys) if upsert else ()
    typed = schemas.get(source.table_name, {})
    history = stores_history(definition)
    if history:
        problems += check_history(definition, named, typed, upsert=upsert)
    time = copied.get((source.event_time or "").lower())
    problems += check_expiry(definition, columns, time=time)
    if header:
        declared = {column.name for column in source.columns}
        meant = [key for key in keys if wanted or key in declared]
        problems += _check_keys(definition, meant, named, upsert=upsert)
        if wanted and upsert:
            problems += _check_same_rows(definition, keys, source, copied=copied)
        for key in ("sequence_by", "apply_as_deletes"):
            written = getattr(header, key)
            if written and upsert:
                place = definition.places.value_of(key)
                problems += header_expression(written, key, typed, place, subject).problems
    deletes = (header.apply_as_deletes if header else None) or _DELETES
    required = {column.name.lower() for column in source.columns if column.required}
    words = {column.name.lower(): column.description for column in source.columns}
    back = {output.lower(): origin for origin, output in copied.items()}
    projection = _projection(tree)
    problems += check_personal(header, columns, definition.places, subject)
    columns = with_personal(columns, projection, header, {SOURCE_RELATION: source.columns})
    problems += check_layout(header, columns, definition.places, subject)
    problems += check_personal_paths(header, columns, definition.places, subject)
    event_id = copied.get((source.event_id or "").lower())
    found_by = keys if upsert else (event_id,) if event_id else ()
    problems += check_text_keys(header, columns, found_by, definition.places, subject)
    return SilverEntry(
        name=definition.name,
        description=header.description if header else None,
        owner=header.owner if header else None,
        tags=header.tags if header else (),
        source=source.name,
        sql=definition.sql,
        projection=projection,
        columns=tuple(
            Column(
                name=column.name,
                type=column.type,
                description=column.description or words.get(back.get(column.name.lower(), "")),
                required=back.get(column.name.lower(), "") in required,
                pii=column.pii,
            )
            for column in columns
        )
        + (HISTORY_COLUMNS if history else ()),
        keys=keys,
        apply=_apply_mode(upsert=upsert, history=history),
        event_id=event_id,
        apply_as_deletes=deletes if upsert else None,
        sequence_by=header.sequence_by if header and upsert else None,
        expiry=expiry_of(definition, columns, time=time),
        partition_by=layout_columns(header, "partition_by", columns),
        cluster_by=layout_columns(header, "cluster_by", columns),
        on_failure=(header.on_failure if header else None) or OnFailure.WARN,
        file=definition.file,
        fingerprint=fingerprint_of(
            without_aliases(resolved),
            {str(source.table_name): typed},
            *keys,
            deletes if upsert else "",
            (header.sequence_by if header else None) or "",
            *([ApplyMode.HISTORY] if history else []),
        ),
    )


def _apply_mode(*, upsert: bool, history: bool) -> ApplyMode:
    if not upsert:
        return ApplyMode.APPEND
    return ApplyMode.HISTORY if history else ApplyMode.UPSERT


def _copied_columns(tree: exp.Query) -> dict[str, str]:
    """Output names of the source columns that are selected unchanged, by lower-case source name."""
    found: dict[str, str] = {}
    for one in tree.selects:
        inner = one.unalias()
        if isinstance(inner, exp.Column):
            found.setdefault(inner.name.lower(), one.output_name)
    return found


def _projection(tree: exp.Query) -> str:
    """The SELECT over the relation that represents the typed source."""
    copy = tree.copy()
    for node in list(table_nodes(copy)):
        alias = node.alias or node.name
        for column in copy.find_all(exp.Column):
            if column.args.get("db"):
                column.set("db", None)
        node.replace(exp.alias_(exp.to_table(SOURCE_RELATION), alias, table=True))
    return to_sql(copy)


def _check_inputs(
    tree: exp.Query, sources: dict[str, SourceEntry], text: SqlText, subject: str
) -> Iterator[LakehouseError]:
    for node in table_nodes(tree):
        name = f"{node.db}.{node.name}".lower()
        if node.db.lower() in (Layer.SILVER, Layer.GOLD):
            yield ForbiddenInputError(
                subject,
                name,
                "a silver table reads one source",
                "Read bronze.NAME, or make this a gold view.",
                location=text.of(node),
            )
            continue
        source = sources.get(node.name.lower())
        if source and not source.format.streamed:
            yield ForbiddenInputError(
                subject,
                name,
                "it holds current rows, not records",
                "Read it in a gold view; it needs no silver table.",
                location=text.of(node),
            )


def _check_shape(tree: exp.Query, text: SqlText, subject: str) -> Iterator[LakehouseError]:
    if not isinstance(tree, exp.Select):
        yield NotAProjectionError(subject, "a set operation", location=text.first())
        return
    for key, clause in _CLAUSES.items():
        value = tree.args.get(key)
        if value:
            node = value[0] if isinstance(value, list) else value
            yield NotAProjectionError(subject, clause, location=text.of(node))
    if not tree.args.get("from_"):
        yield NotAProjectionError(subject, "no FROM", location=text.first())
    for kind, clause in _NODES.items():
        for node in tree.find_all(kind):
            yield NotAProjectionError(subject, clause, location=text.of(node))
    for one in tree.selects:
        if aggregates(one):
            yield NotAProjectionError(subject, "an aggregate", location=text.of(one))


def _check_determined(tree: exp.Query, text: SqlText, subject: str) -> Iterator[LakehouseError]:
    for call in tree.find_all(exp.Func):
        if called_name(call) in NONDETERMINISTIC or reads_clock(call):
            yield NondeterministicError(
                subject,
                f"it calls {called_name(call) or to_sql(call)}",
                "Use a column of the record; __arrived_at is when it was received.",
                location=text.of(call),
            )


def _check_same_rows(
    definition: SilverDefinition,
    keys: tuple[str, ...],
    source: SourceEntry,
    *,
    copied: Mapping[str, str],
) -> Iterator[LakehouseError]:
    """Check that the keys are those of the source; computed keys are not checked."""
    origins = {output.lower(): origin for origin, output in copied.items()}
    told = [origins.get(key.lower()) for key in keys]
    if None not in told and set(told) != {key.lower() for key in source.keys}:
        yield TableKeysDifferError(
            f'silver table "{definition.name}"',
            keys,
            source.keys,
            location=definition.places.of("keys"),
        )


def _check_keys(
    definition: SilverDefinition, keys: list[str], named: list[str], *, upsert: bool
) -> Iterator[LakehouseError]:
    header, places = definition.header, definition.places
    subject = f'silver table "{definition.name}"'
    if header is None:
        return
    if not upsert:
        for key in ("keys", "sequence_by", "apply_as_deletes"):
            if getattr(header, key):
                yield KeyNotApplicableError(
                    subject,
                    key,
                    "its source's events are appended",
                    location=places.of(key),
                )
        return
    for at, key in enumerate(keys):
        if key.lower() not in {name.lower() for name in named}:
            yield KeyNotInOutputError(
                subject, "keys", key, named, location=places.value_of("keys", at)
            )
