"""Models of the case files of silver tables."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from spark_jobs.definitions.models import Instant, Text
from spark_jobs.definitions.quarantine_reasons import QuarantineReason
from spark_jobs.definitions.vocabulary import Operation
from spark_jobs.names import Disposition

Count = Annotated[int, Field(strict=True, ge=0)]
# An object becomes JSON or Avro, text is sent as it is, null means no value.
Payload = Annotated[Any, WithJsonSchema({"type": ["object", "string", "null"]})]
Image = dict[Text, Any]


class Refusal(StrEnum):
    """Conditions with which a table refuses a whole batch."""

    BATCH_HELD = "BATCH_HELD"
    SCHEMA_DRIFT = "SCHEMA_DRIFT"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RecordFile(_Part):
    """A record of the topic, and its expected outcome.

    A change has ``op``, images, a position and the time of its commit; any record can have a key
    and a value, or its bytes in hex.
    """

    op: Operation | None = None
    before: Image | None = None
    after: Image | None = None
    position: Count | None = None
    commit: Count | None = None
    at: Instant | None = None
    key: Payload = None
    value: Payload = None
    hex: Text | None = None
    disposition: Disposition | None = None
    reason: QuarantineReason | None = None
    detail: Text | None = None


class SilverStepFile(_Part):
    """A step of a case: a batch of records, and the expected table."""

    step: Text
    clock: Instant | None = None
    records: tuple[RecordFile, ...]
    refused: Refusal | None = None
    then: Text


class SilverCaseFile(_Part):
    """``tests/cases/silver/<table>.yml``: batches of records, and the expected table after each."""

    description: Text
    clock: Instant | None = None
    records: tuple[RecordFile, ...]
    refused: Refusal | None = None
    then: Text
    when: tuple[SilverStepFile, ...] = ()
