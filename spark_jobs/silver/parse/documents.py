"""Parses raw bytes to a JSON object, or gives the reason why not. Avro becomes JSON first.

A document is a variant. The last of repeated keys wins (the session must allow repeated keys); NaN,
comments, single quotes and trailing text are rejected. Numbers that a variant would round are
stored as marked text, so read scalars with ``casting.text_at``.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from spark_jobs.definitions.quarantine_reasons import QuarantineReason
from spark_jobs.graph.manifest import AvroSchema
from spark_jobs.silver.parse import avro
from spark_jobs.silver.parse.exact_numbers import marked
from spark_jobs.silver.parse.payloads import looks_like, too_deep

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
PROBLEM = "__problem"
DOCUMENT = "__document"
KEY_DOCUMENT = "__key_document"


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
    if schemas:
        value, unread = _avro("__value", max_bytes, schemas), _no_avro("__value", schemas)
    else:
        value, unread = _text("__value", max_bytes), _no_text("__value")
    raw = bronze.select(*(sf.col(old).alias(new) for old, new in RAW_COLUMNS.items()))
    parsed = raw.withColumns(
        {"__text": value, "__key_text": _text("__key", max_bytes)}
    ).withColumns({"__list": _list("__text"), "__key_list": _list("__key_text")})
    first = sf.try_variant_get("__list", "$[0]", "variant")
    key = sf.try_variant_get("__key_list", "$[0]", "variant")
    described = parsed.withColumns(
        {PROBLEM: _problem(max_bytes, unread), "__first": first, "__kf": key}
    )
    return described.select(
        *RAW_COLUMNS.values(),
        PROBLEM,
        sf.when(sf.col(PROBLEM).isNull(), sf.col("__first")).alias(DOCUMENT),
        # A Connect converter with schemas nests the key in "payload".
        sf.coalesce(_payload("__kf"), sf.col("__kf")).alias(KEY_DOCUMENT),
    )


def unwrapped(document: str) -> Column:
    """The change itself, also if a Connect converter with schemas nests it in "payload"."""
    return sf.coalesce(_payload(document), sf.col(document))


def _payload(document: str) -> Column:
    inner = sf.try_variant_get(document, "$.payload", "variant")
    schema = sf.try_variant_get(document, "$.schema", "variant")
    return sf.when(schema.isNotNull() & ~sf.is_variant_null(inner), inner)


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


def _list(text: str) -> Column:
    # The parser stops after one value. Inside a list, trailing text is an error or a second
    # element.
    return sf.try_parse_json(sf.concat(sf.lit("["), marked(sf.col(text)), sf.lit("]")))


def _problem(max_bytes: int, unread: Column) -> Column:
    size = sf.octet_length("__value")
    second = sf.try_variant_get("__list", "$[1]", "variant")
    malformed = problem(QuarantineReason.MALFORMED_JSON, looks_like("__value"))
    return (
        sf.when(sf.col("__value").isNull(), None)
        .when(size == 0, problem(QuarantineReason.EMPTY_VALUE))
        .when(
            size > max_bytes,
            problem(QuarantineReason.OVERSIZED, sf.concat(size, sf.lit(" bytes"))),
        )
        .when(sf.col("__text").isNull(), unread)
        .when(sf.col("__text").rlike(r"^\s*$"), problem(QuarantineReason.EMPTY_VALUE))
        .when(sf.col("__list").isNull() | second.isNotNull(), malformed)
        .when(
            ~sf.col("__text").rlike(r"^\s*\{"),
            problem(QuarantineReason.NOT_AN_OBJECT),
        )
    )
