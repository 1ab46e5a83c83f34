"""Bronze records as the typed source that a silver SELECT reads.

Besides the declared columns: ``__op`` (c, u, d, r or t; NULL for an event), ``__sequence``, the
commit time, the names of unsent columns, the raw record under reserved names, and ``__problem``,
the reason why a record is unusable.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from spark_jobs.access.secrets import DEBEZIUM_PLACEHOLDER
from spark_jobs.definitions.quarantine_reasons import QuarantineReason
from spark_jobs.definitions.vocabulary import Operation, SourceFormat
from spark_jobs.graph.manifest import Column as Declared
from spark_jobs.graph.manifest import SourceEntry
from spark_jobs.silver.parse.casting import scalar, text_at
from spark_jobs.silver.parse.documents import (
    DOCUMENT,
    KEY_DOCUMENT,
    PROBLEM,
    RAW_COLUMNS,
    ROOT,
    exact,
    problem,
    unwrapped,
    with_documents,
)
from spark_jobs.silver.parse.exact_numbers import may_be_rounded
from spark_jobs.silver.parse.nested import Nested, nested
from spark_jobs.silver.parse.sequence import (
    commit_sequence,
    commit_time,
    is_early,
    with_positions,
)
from spark_jobs.silver.parse.shapes import SHAPE, WRITES, is_object, shape
from spark_jobs.silver.parse.unavailable import UNAVAILABLE, is_placeholder, large_columns

OPERATION = "__op"
SEQUENCE = "__sequence"
# Whether a change belongs to the first transaction after a snapshot; NULL for an event.
EARLY = "__early"
IMAGE = "__image"
# ``schema_of_variant`` of the image, before numbers are marked.
TYPES = "__types"
DELETE = str(Operation.DELETE)
CHANGES = (*WRITES, DELETE)
# Logical messages have no row.
MESSAGE = "m"
TRUNCATE = str(Operation.TRUNCATE)
# Commit time of a change; for a snapshot row, when the snapshot read it.
COMMITTED_AT = "__committed_at"
_TIMES = ("timestamp", "timestamp_ntz", "date")
# Tolerance for clocks, and for dates in eastern time zones.
CLOCKS_DIFFER = "INTERVAL 1 DAY"
# Unicode white space and invisible characters.
_BLANK = r"^[\s\p{Z}\p{Cc}\p{Cf}]*$"


def typed_records(
    bronze: DataFrame,
    source: SourceEntry,
    *,
    max_bytes: int,
    placeholder: str = DEBEZIUM_PLACEHOLDER,
) -> DataFrame:
    """Each bronze record with its declared columns, or with a problem.

    Args:
        bronze: records of the source's bronze table.
        source: the declaration.
        max_bytes: longer values are not parsed.
        placeholder: Debezium's placeholder for a value that the database did not send.

    Returns:
        the declared columns, ``OPERATION``, ``SEQUENCE``, ``EARLY`` and ``COMMITTED_AT`` (NULL
            without Debezium), ``UNAVAILABLE``, the values of ``RAW_COLUMNS``, ``PROBLEM`` and
            ``SHAPE``.
    """
    documents = with_documents(bronze, max_bytes=max_bytes, schemas=source.schemas)
    again = exact(max_bytes=max_bytes, schemas=source.schemas)
    if source.format is SourceFormat.DEBEZIUM:
        return _typed_changes(documents, source, placeholder, again)
    types = {
        OPERATION: "string",
        SEQUENCE: "string",
        EARLY: "boolean",
        COMMITTED_AT: "timestamp",
    }
    nothing = {name: sf.lit(None).cast(kind) for name, kind in types.items()}
    images = documents.withColumns(
        {**nothing, TYPES: _first_element(sf.schema_of_variant(DOCUMENT))}
    )
    rounded = sf.when(may_be_rounded(sf.col(TYPES)), again)
    image = _computed_once(sf.coalesce(rounded, sf.col(DOCUMENT)))
    typed = _with_declared(images.withColumn(IMAGE, image), source)
    problems = _column_problems(source, placeholder, deleted=sf.lit(False))  # noqa: FBT003
    return _select(typed, source, placeholder, problems=problems)


def _first_element(types: Column) -> Column:
    """The type of the elements of an array, by the array's ``schema_of_variant``."""
    start, end = "ARRAY<", ">"
    return sf.substring(types, sf.lit(len(start) + 1), sf.length(types) - len(start) - len(end))


def _typed_changes(
    documents: DataFrame, source: SourceEntry, placeholder: str, again: Column
) -> DataFrame:
    changes = documents.withColumn("__change", unwrapped(DOCUMENT)).withColumn(
        OPERATION, text_at(sf.col("__change"), f"{ROOT}.op")
    )
    operation, change = sf.col(OPERATION), sf.col("__change")
    placed = with_positions(changes, "__change")
    images = placed.withColumns(
        {
            SEQUENCE: commit_sequence(change, operation),
            EARLY: is_early(operation),
            COMMITTED_AT: commit_time(change),
            "__rounded": _row_of("__change"),
        }
    ).withColumn(TYPES, sf.schema_of_variant("__rounded"))
    parsed = images.withColumn("__exact", sf.when(may_be_rounded(sf.col(TYPES)), again))
    image = _computed_once(sf.coalesce(_row_of("__exact_change"), sf.col("__rounded")))
    images = parsed.withColumn("__exact_change", unwrapped("__exact")).withColumn(IMAGE, image)
    # A deletion needs only its key, a truncation not even that.
    deleted = operation.isin(DELETE, TRUNCATE)
    return _select(
        _with_declared(images, source),
        source,
        placeholder,
        problems=[
            *_change_problems(source),
            *_column_problems(source, placeholder, deleted=deleted),
        ],
    )


def _computed_once(value: Column) -> Column:
    """The value, as an expression through which Spark pushes no filter.

    A filter takes the place of each column with all that it is made of. By a key of many columns,
    the image would be repeated thousands of times, and its plan would take minutes.
    """
    return sf.when(sf.spark_partition_id() >= 0, value)


def _row_of(change: str) -> Column:
    """The row of a change's document: before a deletion, otherwise after the change."""
    after, before = (
        sf.try_variant_get(change, f"{ROOT}.{name}", "variant") for name in ("after", "before")
    )
    return sf.when(sf.col(OPERATION) == DELETE, before).otherwise(after)


def _with_declared(frame: DataFrame, source: SourceEntry) -> DataFrame:
    image = sf.col(IMAGE)
    texts = {
        _text(column): sf.coalesce(text_at(image, _path(column, source)), _text_in_key(column))
        if column.name in source.keys
        else text_at(image, _path(column, source))
        for column in source.columns
    }
    frame = frame.withColumns(texts)
    return frame.withColumns({column.name: _value(column, source) for column in source.columns})


def _value(column: Declared, source: SourceEntry) -> Column:
    if nested(column.type):
        return Nested(column.type, source.format).value(_document(column, source))
    return scalar(sf.col(_text(column)), column.type, origin=source.format)


def _misfit(column: Declared, source: SourceEntry) -> Column:
    if nested(column.type):
        return Nested(column.type, source.format).misfit(_document(column, source))
    return sf.col(_text(column)).isNotNull() & sf.col(column.name).isNull()


def _document(column: Declared, source: SourceEntry) -> Column:
    return sf.try_variant_get(IMAGE, _path(column, source), "variant")


def _text(column: Declared) -> str:
    return f"__text_{column.name}"


def _unavailable(source: SourceEntry, placeholder: str) -> Column:
    """Names of the columns whose value is the placeholder."""
    if source.format is not SourceFormat.DEBEZIUM:
        return sf.array().cast("array<string>")
    large = large_columns(source)
    found = [
        sf.when(is_placeholder(sf.col(_text(column)), placeholder), sf.lit(column.name))
        for column in source.columns
        if column.name in large
    ]
    nothing = sf.array(sf.lit(None)).cast("array<string>")
    return sf.array_except(sf.array(*found).cast("array<string>"), nothing)


def _path(column: Declared, source: SourceEntry) -> str:
    # An event's image is its document; of a change, the row is part of it.
    root = "$" if source.format is SourceFormat.DEBEZIUM else ROOT
    return f"{root}.{column.name}"


def _text_in_key(column: Declared) -> Column:
    return text_at(sf.col(KEY_DOCUMENT), f"{ROOT}.{column.name}")


def _change_problems(source: SourceEntry) -> list[Column]:
    operation = sf.col(OPERATION)
    row, placed = operation.isin(*CHANGES), operation.isin(*CHANGES, TRUNCATE)
    keyless = [
        sf.when(row & sf.col(_text(column)).isNull(), _named(QuarantineReason.KEY_MISSING, column))
        for column in source.columns
        if column.name in source.keys
    ]
    unlike = [
        sf.when(row & _key_differs(column), _named(QuarantineReason.KEY_MISMATCH, column))
        for column in source.columns
        if column.name in source.keys
    ]
    known = operation.isin(*CHANGES, MESSAGE, TRUNCATE)
    # The Kafka key alone would make a row of NULLs of it.
    rowless = operation.isin(*WRITES) & ~sf.coalesce(is_object(sf.col(TYPES)), sf.lit(False))  # noqa: FBT003
    return [
        sf.when(operation.isNull(), problem(QuarantineReason.NOT_A_CHANGE)),
        sf.when(~known, problem(QuarantineReason.UNKNOWN_OPERATION, operation)),
        sf.when(
            row & sf.col(RAW_COLUMNS["key"]).isNull(), problem(QuarantineReason.KEYLESS_CHANGE)
        ),
        *keyless,
        sf.when(rowless, problem(QuarantineReason.NOT_A_CHANGE, "after")),
        sf.when(
            row & _other_key(source),
            problem(QuarantineReason.KEY_COLUMNS_DIFFER, sf.array_join(_key_columns(), ", ")),
        ),
        *unlike,
        sf.when(placed & sf.col(SEQUENCE).isNull(), problem(QuarantineReason.SEQUENCE_MISSING)),
    ]


def _key_columns() -> Column:
    """Sorted column names of the Kafka key; NULL if the key is not a JSON object."""
    fields = sf.try_variant_get(KEY_DOCUMENT, ROOT, "map<string,variant>")
    return sf.sort_array(sf.map_keys(fields))


def _other_key(source: SourceEntry) -> Column:
    """Whether the Kafka key has other columns than the source's keys.

    A key that is not in Debezium's format is not checked.
    """
    declared = sf.array(*(sf.lit(name) for name in sorted(source.keys)))
    return sf.coalesce(_key_columns() != declared, sf.lit(False))  # noqa: FBT003


def _key_differs(column: Declared) -> Column:
    """Whether the Kafka key and the row image differ in a key column."""
    # Without a value in the image, the column's text is that of the key.
    return sf.col(_text(column)) != _text_in_key(column)


def _column_problems(source: SourceEntry, placeholder: str, *, deleted: Column) -> list[Column]:
    """Problems of single columns; for a deleted row only the key is checked."""
    large = large_columns(source) if source.format is SourceFormat.DEBEZIUM else ()
    found = []
    for column in source.columns:
        text = sf.col(_text(column))
        stands_for_it = is_placeholder(text, placeholder)
        key = column.name in source.keys
        checked = sf.col(OPERATION) != TRUNCATE if key else ~deleted
        if key:
            unavailable = _named(QuarantineReason.UNAVAILABLE_VALUE, column)
            found.append(sf.when(checked & stands_for_it, unavailable))
        misfit = _misfit(column, source)
        if column.name in large:
            # What stands in a value's place is not its value.
            misfit = ~sf.coalesce(stands_for_it, sf.lit(False)) & misfit  # noqa: FBT003
        found.append(sf.when(checked & misfit, _named(QuarantineReason.TYPE_MISMATCH, column)))
        if column.name == source.event_time and column.type in _TIMES:
            ahead = _named(QuarantineReason.EVENT_TIME_AHEAD, column)
            found.append(sf.when(checked & received_before(sf.col(column.name)), ahead))
        if column.required or column.name == source.event_id:
            missing = _named(QuarantineReason.MISSING_REQUIRED, column)
            absent = text.isNull()
            if column.name == source.event_id:
                # A blank id would make all records without an id duplicates.
                absent |= text.rlike(_BLANK)
            found.append(sf.when(checked & absent, missing))
    return found


def received_before(event_time: Column) -> Column:
    """Whether the record arrived before its event time, by more than clocks may differ."""
    latest = sf.col(RAW_COLUMNS["arrived_at"]) + sf.expr(CLOCKS_DIFFER)
    return event_time.cast("timestamp") > latest


def _named(reason: QuarantineReason, column: Declared) -> Column:
    return problem(reason, column.name)


def _select(
    frame: DataFrame, source: SourceEntry, placeholder: str, *, problems: list[Column]
) -> DataFrame:
    # Logical messages have no row, so their columns are not checked.
    usable = sf.col(DOCUMENT).isNotNull() & ~sf.coalesce(
        sf.col(OPERATION) == MESSAGE,
        sf.lit(False),  # noqa: FBT003
    )
    first = sf.coalesce(*problems, sf.lit(None))
    found = sf.coalesce(sf.col(PROBLEM), sf.when(usable, first))
    return frame.select(
        *(sf.col(column.name) for column in source.columns),
        OPERATION,
        SEQUENCE,
        EARLY,
        COMMITTED_AT,
        _unavailable(source, placeholder).alias(UNAVAILABLE),
        *RAW_COLUMNS.values(),
        found.alias(PROBLEM),
        shape(source, sf.col(TYPES), operation=OPERATION, placeholder=placeholder).alias(SHAPE),
    )
