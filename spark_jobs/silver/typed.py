"""Bronze records as the typed source that a silver SELECT reads.

Beside the declared columns: ``__op`` (c, u, d or r; NULL for an event), ``__sequence``, the raw
record under reserved names, and ``__problem``, which says why a record cannot be used.
"""

from __future__ import annotations

import base64

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from spark_jobs.definitions.vocabulary import SourceFormat
from spark_jobs.graph.manifest import Column as Declared
from spark_jobs.graph.manifest import SourceEntry
from spark_jobs.silver.casting import scalar, text_at
from spark_jobs.silver.documents import (
    DOCUMENT,
    KEY_DOCUMENT,
    PROBLEM,
    RAW_COLUMNS,
    problem,
    unwrapped,
    with_documents,
)
from spark_jobs.silver.nested import Nested, nested
from spark_jobs.silver.reasons import QuarantineReason
from spark_jobs.silver.sequence import commit_sequence

OPERATION = "__op"
SEQUENCE = "__sequence"
IMAGE = "__image"
CHANGES = ("c", "u", "r", "d")
# Logical messages have no row.
MESSAGE = "m"
TRUNCATE = "t"
_PLACEHOLDER = "__debezium_unavailable_value"
# Debezium writes its placeholder as a value of the column's type: a text, bytes, an array of texts
# or of bytes, or an hstore.
UNAVAILABLE = (
    _PLACEHOLDER,
    base64.b64encode(_PLACEHOLDER.encode()).decode(),
    f'["{_PLACEHOLDER}"]',
    str(list(_PLACEHOLDER.encode())).replace(" ", ""),
    f'{{"{_PLACEHOLDER}":"{_PLACEHOLDER}"}}',
)


def typed_records(bronze: DataFrame, source: SourceEntry, *, max_bytes: int) -> DataFrame:
    """Every bronze record with its declared columns, or with a problem.

    Args:
        bronze: records of the source's bronze table.
        source: the declaration.
        max_bytes: a longer value is not parsed.
    """
    documents = with_documents(bronze, max_bytes=max_bytes)
    if source.format is SourceFormat.DEBEZIUM:
        return _typed_changes(documents, source)
    image = documents.withColumn(IMAGE, sf.col(DOCUMENT))
    nothing = {OPERATION: sf.lit(None).cast("string"), SEQUENCE: sf.lit(None).cast("string")}
    typed = _with_declared(image.withColumns(nothing), source)
    return _select(typed, source, _column_problems(source, deleted=sf.lit(False)))  # noqa: FBT003


def _typed_changes(documents: DataFrame, source: SourceEntry) -> DataFrame:
    changes = documents.withColumn("__change", unwrapped(DOCUMENT)).withColumn(
        OPERATION, text_at(sf.col("__change"), "$.op")
    )
    operation, change = sf.col(OPERATION), sf.col("__change")
    after = sf.try_variant_get("__change", "$.after", "variant")
    before = sf.try_variant_get("__change", "$.before", "variant")
    images = changes.withColumns(
        {
            SEQUENCE: commit_sequence(change, operation),
            IMAGE: sf.when(operation == "d", before).otherwise(after),
        }
    )
    deleted = operation == "d"
    return _select(
        _with_declared(images, source),
        source,
        [*_change_problems(source), *_column_problems(source, deleted=deleted)],
    )


def _with_declared(frame: DataFrame, source: SourceEntry) -> DataFrame:
    image, key = sf.col(IMAGE), sf.col(KEY_DOCUMENT)
    texts = {
        _text(column): sf.coalesce(text_at(image, _path(column)), text_at(key, _path(column)))
        if column.name in source.keys
        else text_at(image, _path(column))
        for column in source.columns
    }
    frame = frame.withColumns(texts)
    return frame.withColumns({column.name: _value(column, source) for column in source.columns})


def _value(column: Declared, source: SourceEntry) -> Column:
    if nested(column.type):
        return Nested(column.type, source.format).value(_document(column))
    return scalar(sf.col(_text(column)), column.type, origin=source.format)


def _misfit(column: Declared, source: SourceEntry) -> Column:
    if nested(column.type):
        return Nested(column.type, source.format).misfit(_document(column))
    return sf.col(_text(column)).isNotNull() & sf.col(column.name).isNull()


def _document(column: Declared) -> Column:
    return sf.try_variant_get(IMAGE, _path(column), "variant")


def _text(column: Declared) -> str:
    return f"__text_{column.name}"


def _path(column: Declared) -> str:
    return f"$.{column.name}"


def _change_problems(source: SourceEntry) -> list[Column]:
    operation = sf.col(OPERATION)
    row = operation.isin(*CHANGES)
    keyless = [
        sf.when(row & sf.col(_text(column)).isNull(), _named(QuarantineReason.KEY_MISSING, column))
        for column in source.columns
        if column.name in source.keys
    ]
    known = operation.isin(*CHANGES, MESSAGE)
    return [
        sf.when(operation.isNull(), problem(QuarantineReason.NOT_A_CHANGE)),
        sf.when(operation == TRUNCATE, problem(QuarantineReason.UNSUPPORTED_TRUNCATE)),
        sf.when(~known, problem(QuarantineReason.UNKNOWN_OPERATION, operation)),
        *keyless,
        sf.when(row & sf.col(SEQUENCE).isNull(), problem(QuarantineReason.SEQUENCE_MISSING)),
    ]


def _column_problems(source: SourceEntry, *, deleted: Column) -> list[Column]:
    """What is wrong with single columns; of a deleted row only the key is looked at."""
    found = []
    for column in source.columns:
        text = sf.col(_text(column))
        checked = sf.lit(True) if column.name in source.keys else ~deleted  # noqa: FBT003
        if source.format is SourceFormat.DEBEZIUM:
            unavailable = _named(QuarantineReason.UNAVAILABLE_VALUE, column)
            found.append(sf.when(checked & text.isin(*UNAVAILABLE), unavailable))
        mismatch = _named(QuarantineReason.TYPE_MISMATCH, column)
        found.append(sf.when(checked & _misfit(column, source), mismatch))
        if column.required or column.name == source.event_id:
            missing = _named(QuarantineReason.MISSING_REQUIRED, column)
            found.append(sf.when(checked & text.isNull(), missing))
    return found


def _named(reason: QuarantineReason, column: Declared) -> Column:
    return problem(reason, column.name)


def _select(frame: DataFrame, source: SourceEntry, problems: list[Column]) -> DataFrame:
    # A message is no row, so its columns are not looked at.
    usable = sf.col(DOCUMENT).isNotNull() & ~sf.coalesce(
        sf.col(OPERATION) == MESSAGE,
        sf.lit(False),  # noqa: FBT003
    )
    first = sf.coalesce(*problems, sf.lit(None))
    return frame.select(
        *(sf.col(column.name) for column in source.columns),
        OPERATION,
        SEQUENCE,
        *RAW_COLUMNS.values(),
        sf.coalesce(sf.col(PROBLEM), sf.when(usable, first)).alias(PROBLEM),
    )
