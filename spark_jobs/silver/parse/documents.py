"""Parses raw bytes to a JSON object, or gives the reason why not. Avro becomes JSON first.

A document is a variant with the object as the first element of an array, so paths in it begin with
``ROOT``: to take the object out would write it again. A path that leads nowhere is slow, because
Spark throws an exception inside; ask for what is there. The last of repeated keys wins (the session
must allow repeated keys); NaN, comments, single quotes and trailing text are rejected. A variant
rounds some numbers; ``exact`` parses them as marked text, so read scalars with
``casting.text_at``.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from functools import lru_cache

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.utils import is_remote

from spark_jobs.definitions.quarantine_reasons import QuarantineReason
from spark_jobs.graph.manifest import AvroSchema
from spark_jobs.silver.parse import avro
from spark_jobs.silver.parse.exact_numbers import every_number_marked, marked
from spark_jobs.silver.parse.payloads import looks_like, too_deep
from spark_jobs.silver.parse.prepared import prepared

# Fields of a bronze record under reserved names, to avoid clashes with declared columns.
RAW_COLUMNS = {
    "key": "__key",
    "value": "__value",
    "headers": "__headers",
    "topic": "__topic",
    "partition": "__partition",
    "offset": "__offset",
    "timestamp": "__timestamp",
    "arrived_at": "__arrived_at",
}
# Limits and Avro schemas of one process.
_KEPT = 64
PROBLEM = "__problem"
DOCUMENT = "__document"
KEY_DOCUMENT = "__key_document"
# Path of the object in a document.
ROOT = "$[0]"
# The only field of a document's second element. Random per process, so that no record has it.
LAST = f"last_{secrets.token_hex(8)}"


def problem(reason: QuarantineReason, detail: Column | str | None = None) -> Column:
    """The value of ``__problem`` for a reason."""
    told = detail if isinstance(detail, Column) else sf.lit(detail)
    return sf.struct(sf.lit(str(reason)).alias("reason"), told.cast("string").alias("detail"))


def with_documents(
    bronze: DataFrame, *, max_bytes: int, schemas: Sequence[AvroSchema] = ()
) -> DataFrame:
    """The records with the documents of value and key, and the value's problem.

    A record without a value has neither a document nor a problem.

    Args:
        bronze: records with bronze's columns.
        max_bytes: longer values and keys are not parsed.
        schemas: Avro schemas of the values; (): values are JSON.

    Returns:
        the values of ``RAW_COLUMNS``, ``PROBLEM``, and the variants ``DOCUMENT`` and
            ``KEY_DOCUMENT``.
    """
    return _parsing(max_bytes, tuple(schemas), remote=is_remote())(bronze)


@lru_cache(maxsize=_KEPT)
def _parsing(
    max_bytes: int, schemas: tuple[AvroSchema, ...], *, remote: bool
) -> Callable[[DataFrame], DataFrame]:
    """The steps of ``with_documents``, which most sources share.

    Their columns are nearly half of the calls into the JVM that a source's columns take.
    """
    del remote  # Columns of a classic session are not those of Spark Connect.
    return prepared(lambda bronze: _parsed(bronze, max_bytes, schemas))


def _parsed(bronze: DataFrame, max_bytes: int, schemas: Sequence[AvroSchema]) -> DataFrame:
    if schemas:
        value, unread = _avro("__value", max_bytes, schemas), _no_avro("__value", schemas)
    else:
        value, unread = _text("__value", max_bytes), _no_text("__value")
    raw = bronze.select(*(sf.col(old).alias(new) for old, new in RAW_COLUMNS.items()))
    parsed = raw.withColumns(
        {"__text": value, "__key_text": _text("__key", max_bytes)}
    ).withColumns(
        {
            # The parser refuses numbers of more than a thousand digits unless they are marked.
            "__list": sf.coalesce(_list(sf.col("__text")), _list(marked(sf.col("__text")))),
            "__key_list": _list(marked(sf.col("__key_text"))),
        }
    )
    return parsed.withColumn(PROBLEM, _problem(max_bytes, unread)).select(
        *RAW_COLUMNS.values(),
        PROBLEM,
        sf.when(sf.col(PROBLEM).isNull(), sf.col("__list")).alias(DOCUMENT),
        unwrapped("__key_list", raw="__key").alias(KEY_DOCUMENT),
    )


def exact(*, max_bytes: int, schemas: Sequence[AvroSchema] = ()) -> Column:
    """The document of a record without a problem, with marked text for numbers it would round.

    Parsing the value twice costs time, so ask only for records that need it.

    Args:
        max_bytes: longer values are not parsed.
        schemas: Avro schemas of the values; (): values are JSON.
    """
    text = _avro("__value", max_bytes, schemas) if schemas else sf.col("__value").cast("string")
    return _list(every_number_marked(text))


def unwrapped(document: str, *, raw: str = "__value") -> Column:
    """The document, also if a Connect converter with schemas nests it in "payload".

    Args:
        document: name of the column with the document.
        raw: name of the column with its bytes.
    """
    inner = sf.try_variant_get(document, f"{ROOT}.payload", "variant")
    schema = sf.try_variant_get(document, f"{ROOT}.schema", "variant")
    told = sf.contains(sf.col(raw).cast("string"), sf.lit('payload"'))
    nested = schema.isNotNull() & inner.isNotNull() & ~sf.is_variant_null(inner)
    # Not one condition: Spark would evaluate all of its parts for each record.
    taken = sf.when(nested, sf.to_variant_object(sf.array(inner))).otherwise(sf.col(document))
    return sf.when(told, taken).otherwise(sf.col(document))


def _text(column: str, max_bytes: int) -> Column:
    """The bytes as text that is safe to parse, otherwise NULL.

    Spark parses nested documents recursively: a few hundred levels overflow the stack and end the
    process, and the record would be read again after each restart.
    """
    text = sf.col(column).cast("string")
    sound = (sf.octet_length(column) <= max_bytes) & sf.is_valid_utf8(text)
    return sf.when(sound & ~too_deep(text), text)


def _no_text(column: str) -> Column:
    """The reason why bytes are not safe to parse."""
    unreadable = ~sf.is_valid_utf8(sf.col(column).cast("string"))
    not_utf8 = problem(QuarantineReason.NOT_UTF8, looks_like(column))
    return sf.when(unreadable, not_utf8).otherwise(problem(QuarantineReason.TOO_DEEP))


def _avro(column: str, max_bytes: int, schemas: Sequence[AvroSchema]) -> Column:
    return sf.when(sf.octet_length(column) <= max_bytes, avro.decoded(column, schemas))


def _no_avro(column: str, schemas: Sequence[AvroSchema]) -> Column:
    """The reason why bytes are not a record of these schemas."""
    unknown = problem(QuarantineReason.UNKNOWN_SCHEMA, avro.named(column))
    malformed = problem(QuarantineReason.MALFORMED_AVRO)
    return sf.when(~avro.known(column, schemas), unknown).otherwise(malformed)


def _list(text: Column) -> Column:
    # The parser stops after one value. Inside a list, trailing text is an error, or another element
    # in place of the last.
    return sf.try_parse_json(sf.concat(sf.lit("["), text, sf.lit(f',{{"{LAST}":0}}]')))


def _problem(max_bytes: int, unread: Column) -> Column:
    size = sf.octet_length("__value")
    alone = sf.try_variant_get("__list", f"$[1].{LAST}", "int").isNotNull()
    malformed = problem(QuarantineReason.MALFORMED_JSON, looks_like("__value"))
    opens = sf.startswith(sf.col("__text"), sf.lit("{"))
    return (
        sf.when(sf.col("__value").isNull(), None)
        .when(size == 0, problem(QuarantineReason.EMPTY_VALUE))
        .when(
            size > max_bytes,
            problem(QuarantineReason.OVERSIZED, sf.concat(size, sf.lit(" bytes"))),
        )
        .when(sf.col("__text").isNull(), unread)
        .when(~opens & sf.col("__text").rlike(r"^\s*$"), problem(QuarantineReason.EMPTY_VALUE))
        .when(sf.col("__list").isNull() | ~alone, malformed)
        .when(
            ~opens & ~sf.col("__text").rlike(r"^\s*\{"),
            problem(QuarantineReason.NOT_AN_OBJECT),
        )
    )
