"""Quarantine reasons: stable codes; their detail names the column."""

from __future__ import annotations

from enum import StrEnum


class QuarantineReason(StrEnum):
    """One code per kind of error; a record gets the first that applies, in this order."""

    EMPTY_VALUE = "EMPTY_VALUE"
    # Larger than streams.max_record_bytes.
    OVERSIZED = "OVERSIZED"
    NOT_UTF8 = "NOT_UTF8"
    # Avro whose prefix names none of the source's schemas; the detail has the prefix.
    UNKNOWN_SCHEMA = "UNKNOWN_SCHEMA"
    # Avro that its schema cannot read.
    MALFORMED_AVRO = "MALFORMED_AVRO"
    # Too many nested objects and arrays.
    TOO_DEEP = "TOO_DEEP"
    MALFORMED_JSON = "MALFORMED_JSON"
    # JSON, but an array or a scalar.
    NOT_AN_OBJECT = "NOT_AN_OBJECT"
    # An object without the operation that every Debezium change has; or an insert, update or row of
    # a snapshot with a key, but without the row: the detail is "after".
    NOT_A_CHANGE = "NOT_A_CHANGE"
    UNKNOWN_OPERATION = "UNKNOWN_OPERATION"
    # A change without a Kafka key: its table has no primary key, so the changed row is unknown.
    KEYLESS_CHANGE = "KEYLESS_CHANGE"
    # A key column is in neither the row image nor the Kafka key, or the SELECT makes it NULL.
    KEY_MISSING = "KEY_MISSING"
    # The Kafka key has other columns than the source's keys. The detail has the key's columns.
    KEY_COLUMNS_DIFFER = "KEY_COLUMNS_DIFFER"
    # The row image and the Kafka key differ in the key.
    KEY_MISMATCH = "KEY_MISMATCH"
    # A change without a usable sequence or time; the detail names the declared sequence column.
    SEQUENCE_MISSING = "SEQUENCE_MISSING"
    # Debezium's placeholder for an unsent large value, if no earlier row of the key has the value,
    # or if the SELECT computes with it.
    UNAVAILABLE_VALUE = "UNAVAILABLE_VALUE"
    TYPE_MISMATCH = "TYPE_MISMATCH"
    # The event time is later than the arrival, by more than clocks may differ.
    EVENT_TIME_AHEAD = "EVENT_TIME_AHEAD"
    MISSING_REQUIRED = "MISSING_REQUIRED"
    # A row that fails an expectation of the table's suite; the detail has its name and columns.
    EXPECTATION_FAILED = "EXPECTATION_FAILED"
