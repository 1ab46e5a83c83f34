"""Decodes Avro records to JSON text, which is then typed like any other JSON."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql.avro.functions import from_avro

from spark_jobs.graph.manifest import AvroSchema

# The JSON of a corrupt record, and of one whose fields are all null: neither has an id.
_NOTHING = "{}"
# The first bytes name the schema, by registry id or fingerprint; this many are reported.
_LONGEST_PREFIX = 10
_TO_JSON = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


def decoded(column: str, schemas: Sequence[AvroSchema]) -> Column:
    """The JSON text of an Avro record; NULL if no schema can read it.

    Bytes become base64, times ISO 8601, with a zone only if the schema's type has one.
    """
    texts = []
    for schema in schemas:
        length = len(schema.prefix) // 2
        body = sf.substring(column, length + 1, 2**31 - 1)
        record = from_avro(body, schema.text, {"mode": "PERMISSIVE"})
        text = sf.nullif(sf.to_json(record, _TO_JSON), sf.lit(_NOTHING))
        texts.append(sf.when(_begins(column, schema), text))
    return sf.coalesce(*texts)


def known(column: str, schemas: Sequence[AvroSchema]) -> Column:
    """Whether a record's prefix names one of the schemas."""
    found = sf.lit(False)  # noqa: FBT003
    for schema in schemas:
        found = found | _begins(column, schema)
    return found


def named(column: str) -> Column:
    """The first bytes of a record as hex."""
    return sf.hex(sf.substring(column, 1, _LONGEST_PREFIX))


def _begins(column: str, schema: AvroSchema) -> Column:
    return named(column).startswith(schema.prefix)
