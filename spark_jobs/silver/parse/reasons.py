"""Why a record is in quarantine; the codes are stable, the detail beside them names the column."""

from __future__ import annotations

from enum import StrEnum


class QuarantineReason(StrEnum):
    """One code per kind of mistake; a record carries the first that applies, in this order."""

    EMPTY_VALUE = "EMPTY_VALUE"
    # Larger than streams.max_record_bytes.
    OVERSIZED = "OVERSIZED"
    NOT_UTF8 = "NOT_UTF8"
    # Avro whose first bytes name none of the source's schemas; the detail is these bytes.
    UNKNOWN_SCHEMA = "UNKNOWN_SCHEMA"
    # Avro that its schema cannot read.
    MALFORMED_AVRO = "MALFORMED_AVRO"
    # Objects and arrays within each other, more of them than any reader must follow.
    TOO_DEEP = "TOO_DEEP"
    MALFORMED_JSON = "MALFORMED_JSON"
    # JSON, but an array or a scalar.
    NOT_AN_OBJECT = "NOT_AN_OBJECT"
    # An object without the operation that every Debezium change has.
    NOT_A_CHANGE = "NOT_A_CHANGE"
    UNKNOWN_OPERATION = "UNKNOWN_OPERATION"
    # A change without a Kafka key: its table has no primary key, so nobody can tell which of its
    # rows changed.
    KEYLESS_CHANGE = "KEYLESS_CHANGE"
    # Neither the image nor the Kafka key holds a key column, or the SELECT makes NULL of it.
    KEY_MISSING = "KEY_MISSING"
    # The Kafka key has other columns than the source's keys: these identify no row. The detail is
    # the key's columns.
    KEY_COLUMNS_DIFFER = "KEY_COLUMNS_DIFFER"
    # The image and the Kafka key hold different keys.
    KEY_MISMATCH = "KEY_MISMATCH"
    # A change whose place in the order of changes, or whose time, cannot be told; the detail is
    # what the declaration orders by.
    SEQUENCE_MISSING = "SEQUENCE_MISSING"
    # Debezium's placeholder for a large value that the database did not send, where no earlier row
    # of the key is known to take the value from, or where the SELECT computes with it.
    UNAVAILABLE_VALUE = "UNAVAILABLE_VALUE"
    TYPE_MISMATCH = "TYPE_MISMATCH"
    # The event happened later than it was received, beyond what clocks differ.
    EVENT_TIME_AHEAD = "EVENT_TIME_AHEAD"
    MISSING_REQUIRED = "MISSING_REQUIRED"
