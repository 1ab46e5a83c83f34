"""The page of each table, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from spark_jobs.bronze.table import COLUMNS
from spark_jobs.definitions.durations import duration_text
from spark_jobs.definitions.vocabulary import RefreshPolicy
from spark_jobs.graph.filled import filled_columns
from spark_jobs.graph.manifest import ApplyMode, Column, GoldEntry, SilverEntry, SourceEntry
from spark_jobs.quality.implied import with_implied
from spark_jobs.serving.dictionary import markup
from spark_jobs.serving.dictionary.checks import checks, never_null
from spark_jobs.serving.dictionary.picture import draw
from spark_jobs.serving.dictionary.refreshing import refreshing
from spark_jobs.serving.dictionary.samples import Sample
from spark_jobs.serving.dictionary.tables import Dictionary, Entry, lineage
from spark_jobs.silver.store.tables import SilverTables
from spark_jobs.storage.lake import Lake

Fact = tuple[str, str]
_PERSONAL = "Personal data; queries mask it."


def table_page(
    found: Dictionary, entry: Entry, *, text: str = "", sample: Sample | None = None
) -> str:
    """The page of a table.

    Args:
        found: the project.
        entry: the table.
        text: text of its file, to locate what prevents incremental maintenance.
        sample: some of its rows, if available.
    """
    match entry:
        case SourceEntry():
            parts = _source(found, entry)
        case SilverEntry():
            parts = _silver(found, entry)
        case GoldEntry():
            parts = _gold(found, entry, text, sample)
    name = str(entry.table_name)
    facts = [("Owner", markup.words(entry.owner or "not declared")), *_about(found, entry)]
    return markup.page(
        name,
        [
            markup.words(entry.description or "No description is declared."),
            markup.table(("", ""), facts),
            *parts,
        ],
    )


def _source(found: Dictionary, entry: SourceEntry) -> Iterator[str]:
    if not entry.format.streamed:
        yield markup.section("Columns", _columns(entry.columns))
    else:
        yield markup.section(
            "Columns of a record",
            "What silver tables can select. A record that a required column is missing from is "
            "quarantined.",
            _columns(entry.columns),
        )
    yield _lineage(found, entry)
    if entry.format.streamed:
        yield markup.section(
            "Columns of the bronze table",
            "Records as they were received; nothing is parsed. People read silver tables.",
            _columns(COLUMNS),
        )


def _silver(found: Dictionary, entry: SilverEntry) -> Iterator[str]:
    required = frozenset(one.name for one in entry.columns if one.required)
    yield markup.section("Columns", _columns(entry.columns, never=required | set(entry.row_key)))
    yield _lineage(found, entry)
    yield markup.section("How it is filled", _APPLIED[entry.apply])
    yield checks(entry.suite, of_batches=entry.on_failure)
    yield markup.section("SQL", markup.fenced(entry.sql.strip(), "sql"))
    own = {column.name for column in entry.columns}
    stored = SilverTables.of(Lake("/"), entry).columns
    yield markup.section(
        "Columns in addition to those of the SQL",
        _columns([one for one in stored if one.name not in own]),
    )


_APPLIED = {
    ApplyMode.APPEND: "By a stream: each event is a row, once, however often it was sent.",
    ApplyMode.UPSERT: "By a stream: each key has its current row. Changes apply in the "
    "commit order of the source's database; a delete there deletes the row.",
    ApplyMode.HISTORY: "By a stream: each key has a row for every version of its values; a late "
    "change corrects the versions around it.",
}


def _gold(found: Dictionary, entry: GoldEntry, text: str, sample: Sample | None) -> Iterator[str]:
    never = never_null(entry.suite) | filled_columns(entry.query)
    yield markup.section("Columns", _columns(entry.columns, never=never))
    yield _lineage(found, entry)
    yield refreshing(found, entry, text)
    implied = with_implied(
        entry.suite, view=entry.name, grain=entry.grain, text_parts=entry.text_parts
    )
    yield checks(implied)
    yield markup.section("SQL", markup.fenced(entry.sql.strip(), "sql"))
    if sample is not None:
        yield markup.section("Some rows", sample.words, sample.table)


def _about(found: Dictionary, entry: Entry) -> Iterator[Fact]:
    if entry.tags:
        yield "Tags", markup.listed(map(markup.code, entry.tags))
    yield "Declared in", markup.code(entry.file)
    if isinstance(entry, SilverEntry) and entry.expiry is not None:
        days = duration_text(entry.expiry.days * 86_400)
        yield "Rows leave", f"{days} after {markup.code(entry.expiry.column)}"
    if isinstance(entry, SilverEntry | GoldEntry):
        yield from _layout(entry)
    match entry:
        case SourceEntry():
            yield from _about_source(entry)
        case SilverEntry() if entry.row_key:
            yield "One row per", markup.listed(map(markup.code, entry.row_key))
        case SilverEntry():
            yield "One row per", "event"
        case GoldEntry():
            yield from _about_view(entry)
    name = str(entry.table_name)
    yield "Read by", found.links(found.readers(name)) or "no table"
    delivered = [f"{one.system} {markup.code(one.target)}" for one in found.sinks(name)]
    if delivered:
        yield "Delivered to", markup.listed(delivered)


def _layout(entry: SilverEntry | GoldEntry) -> Iterator[Fact]:
    if entry.partition_by:
        yield "Partitioned by", markup.listed(map(markup.code, entry.partition_by))
    if entry.cluster_by:
        yield "Clustered by", markup.listed(map(markup.code, entry.cluster_by))


def _about_source(entry: SourceEntry) -> Iterator[Fact]:
    yield "Format", str(entry.format)
    if entry.topic:
        yield "Kafka topic", markup.code(entry.topic)
    if entry.location:
        yield "Delta table", markup.code(entry.location)
    if entry.path:
        yield "file", markup.code(entry.path)
    if entry.table:
        yield "Table at the source", markup.code(entry.table)
    if entry.keys:
        yield "One row per", markup.listed(map(markup.code, entry.keys))
    if entry.event_id:
        yield "Events are identified by", markup.code(entry.event_id)
    if entry.event_time:
        yield "It happened at", markup.code(entry.event_time)
    if entry.watermark_seconds:
        yield "Watermark", duration_text(entry.watermark_seconds)


def _about_view(entry: GoldEntry) -> Iterator[Fact]:
    derived = entry.maintenance.key if entry.maintenance else ()
    key = markup.listed(map(markup.code, entry.grain or derived))
    how = "as declared" if entry.grain else "derived from the SQL"
    yield "One row per", f"{key} ({how})" if key else "not known: rows may be equal"
    if entry.contract is not None:
        version = f"version {entry.contract_version}"
        yield "Contract", f"{entry.contract}, {version}: its columns and their types stay"
    yield "Refreshed", refreshed(entry)
    target = entry.freshness_seconds
    yield "Freshness target", duration_text(target) if target else "none"
    if entry.verify_seconds:
        yield "Compared with its SQL", f"every {duration_text(entry.verify_seconds)}"


def refreshed(entry: GoldEntry) -> str:
    """When a view is refreshed, in a few words."""
    match entry.refresh:
        case RefreshPolicy.MICRO_BATCH:
            return entry.due
        case RefreshPolicy.CONTINUOUS:
            return "as its inputs move"
        case RefreshPolicy.BULK:
            return f"{entry.due}, and on request" if entry.due else "on request"


def _columns(
    columns: tuple[Column, ...] | list[Column], never: frozenset[str] | set[str] | None = None
) -> str:
    """A table of columns; ``never``: columns that are never NULL; None: the required ones."""
    return markup.table(
        ("column", "type", "NULL", "meaning"),
        [
            (
                markup.code(one.name),
                markup.code(one.type) if one.type else "decided by Spark",
                "no" if (one.required if never is None else one.name in never) else "yes",
                markup.words(" ".join(filter(None, [one.meaning, _PERSONAL if one.pii else ""]))),
            )
            for one in columns
        ],
    )


def _lineage(found: Dictionary, entry: Entry) -> str:
    name = str(entry.table_name)
    picture = draw(found.graph.around(name), name)
    if isinstance(entry, SourceEntry):
        return markup.section("Lineage", picture)
    origins = lineage(entry)
    rows = [
        (
            markup.code(column.name),
            markup.listed(
                f"{found.link(one.table)} {markup.code(found.spelled(one).column)}"
                for one in origins.columns[column.name]
            )
            or "no column: it counts rows or is constant",
            "as it is" if column.name in origins.copies else "",
        )
        for column in entry.columns
        if column.name in origins.columns
    ]
    deciding = markup.listed(
        f"{markup.code(f'{one.table}.{found.spelled(one).column}')}" for one in origins.rows
    )
    return markup.section(
        "Lineage",
        picture,
        markup.table(("column", "computed from", ""), rows),
        f"Joined, filtered, grouped or ordered by {deciding}." if deciding else "",
    )
