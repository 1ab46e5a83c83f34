"""Every class of bad input: what arrives, and how each of its records ends.

The page docs/bad-input.md shows this table.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from spark_jobs.names import Disposition

Record = tuple[bytes | None, bytes | None]

MAX_BYTES = 20_000
APPLIED, SUPERSEDED, QUARANTINED, DUPLICATE, IGNORED = (str(one) for one in Disposition)


@dataclass(frozen=True)
class BadInput:
    """One class.

    Attributes:
        records: those that show it, with what must be there before.
        ends: of each record its disposition, its reason and its column; of the last one the page
            tells disposition and reason.
        row: values of the silver row of the last record.
        timestamp: milliseconds that Kafka gives the records; None is an ordinary time.
    """

    number: str
    what: str
    records: tuple[Record, ...]
    ends: tuple[tuple[str, ...], ...]
    row: dict[str, Any] = field(default_factory=dict)
    headers: tuple[tuple[str, bytes], ...] = ()
    timestamp: int | None = None


def body(number: str, **fields: Any) -> Record:
    return b"k", json.dumps({"event_id": number, **fields}).encode()


def raw(number: str, members: str) -> Record:
    """An event with members that Python's writer would not write."""
    return b"k", f'{{"event_id": "{number}", {members}}}'.encode()


def rejected(
    number: str, what: str, reason: str, *values: Record | bytes, column: str = ""
) -> BadInput:
    records = tuple(one if isinstance(one, tuple) else (b"k", one) for one in values)
    end = tuple(filter(None, (QUARANTINED, reason, column)))
    return BadInput(number, what, records, (end,) * len(records))


def accepted(number: str, what: str, record: Record, **row: Any) -> BadInput:
    return BadInput(number, what, (record,), ((APPLIED,),), row)


ODD_TEXT = "a\u0000b\u0007\u202e\U0001f600"
HOSTILE = "'; DROP TABLE silver.clicks; --{{ 7*7 }}<script>=cmd|' /C calc'!A0"
# A variant would make 100.0 of it.
LONG = f"100.{'0' * 44}1"
DEEP = "[" * 1000 + "]" * 1000

EVENT_CLASSES: tuple[BadInput, ...] = (
    rejected("B01", "an empty value, or blanks", "EMPTY_VALUE", b"", b" \n"),
    BadInput("B02", "no value on a topic of events", ((b"k", None),), ((IGNORED,),)),
    accepted("B03", "no key", (None, body("B03", user_id=1)[1]), user_id=1),
    rejected("B04", "bytes that are not UTF-8", "NOT_UTF8", b'{"event_id": "\xff"}'),
    rejected("B05", "truncated JSON", "MALFORMED_JSON", b'{"event_id": "B05", "user'),
    rejected("B06", "an array or a scalar", "NOT_AN_OBJECT", b'[{"event_id": "a"}]', b"7", b"null"),
    accepted(
        "B07",
        "a repeated key; the last counts",
        raw("B07", '"user_id": 1, "user_id": 2'),
        user_id=2,
    ),
    rejected(
        "B08",
        "more bytes than `streams.max_record_bytes`",
        "OVERSIZED",
        b"x" * (MAX_BYTES + 1),
        column=f"{MAX_BYTES + 1} bytes",
    ),
    rejected(
        "B09",
        "objects and arrays, 1,000 deep",
        "TOO_DEEP",
        raw("B09", f'"note": {DEEP}'),
        b'{"a":' * 1000,
    ),
    accepted(
        "B09",
        "hundreds of objects side by side, and brackets in texts",
        body("B09-flat", note=[{"a": '\\"[[{'}] * 300),
    ),
    rejected(
        "B10",
        "NaN or Infinity as a token",
        "MALFORMED_JSON",
        raw("B10", '"score": NaN'),
        raw("B10", '"score": -Infinity'),
    ),
    rejected(
        "B11",
        "a whole number beyond 64 bits",
        "TYPE_MISMATCH",
        raw("B11", '"user_id": 9223372036854775808'),
        raw("B11", '"user_id": 1e400'),
        column="user_id",
    ),
    rejected(
        "B11",
        "a number beyond a double",
        "TYPE_MISMATCH",
        raw("B11", '"score": 1e400'),
        column="score",
    ),
    accepted("B12", "a number written as a text", body("B12", user_id="12"), user_id=12),
    accepted("B13", "a number where a text is declared", raw("B13", '"note": 1.25'), note="1.25"),
    accepted(
        "B13",
        "a number of any length where a text is declared; it stays as written",
        raw("B13-long", f'"note": {LONG}'),
        note=LONG,
    ),
    rejected(
        "B14",
        "a decimal with too many digits",
        "TYPE_MISMATCH",
        raw("B14", f'"amount": {"9" * 40}'),
        raw("B14", '"amount": 1.005'),
        raw("B14", '"amount": 12345678901.00'),
        column="amount",
    ),
    rejected(
        "B14",
        "a decimal of 38 digits that would be rounded",
        "TYPE_MISMATCH",
        raw("B14", '"exact": 0.12345678901'),
        raw("B14", '"exact": 1e-50'),
        raw("B14", f'"exact": {"1" * 34}.{"0" * 10}'),
        column="exact",
    ),
    rejected(
        "B14",
        "a decimal of more than 38 digits that would be rounded",
        "TYPE_MISMATCH",
        raw("B14", f'"amount": {LONG}'),
        raw("B14", f'"amount": "{LONG}"'),
        column="amount",
    ),
    rejected(
        "B14",
        "a decimal with an exponent beyond 999, or of more than 1,000 characters",
        "TYPE_MISMATCH",
        raw("B14", '"amount": 1e-2147483648'),
        raw("B14", '"amount": "1e-2147483647"'),
        raw("B14", '"amount": "1e2147483647"'),
        raw("B14", f'"amount": 1.{"0" * 1000}'),
        column="amount",
    ),
    accepted(
        "B14",
        "a decimal with zeros beyond its scale, or with an exponent",
        raw("B14-zeros", f'"amount": 1.{"0" * 900}, "exact": 1234567890123e-10'),
        amount=Decimal("1.00"),
        exact=Decimal("123.4567890123").quantize(Decimal("1e-10")),
    ),
    rejected(
        "B15",
        "a required field that is missing or null",
        "MISSING_REQUIRED",
        b"{}",
        b'{"event_id": null}',
        column="event_id",
    ),
    rejected(
        "B15",
        "an event id without visible characters",
        "MISSING_REQUIRED",
        body(""),
        body(" \t"),
        body("\u00a0\u200b\u0000"),
        column="event_id",
    ),
    accepted("B16", "undeclared fields", body("B16", more={"a": [1]}), user_id=None),
    rejected(
        "B17",
        "field names in another case, or with blanks",
        "MISSING_REQUIRED",
        b'{"EVENT_ID": "B17"}',
        b'{" event_id ": "B17"}',
        column="event_id",
    ),
    accepted("B18", "an empty text where a text is declared", body("B18", note=""), note=""),
    rejected(
        "B18",
        "an empty text where a number is declared",
        "TYPE_MISMATCH",
        body("B18", user_id=""),
        column="user_id",
    ),
    rejected(
        "B19",
        "a Boolean as yes, 1 or T",
        "TYPE_MISMATCH",
        body("B19", active="yes"),
        body("B19", active=1),
        body("B19", active="T"),
        column="active",
    ),
    rejected(
        "B20",
        "a time as a number of seconds, milli- or microseconds",
        "TYPE_MISMATCH",
        body("B20", at=1700000000),
        body("B20", at=1700000000000),
        body("B20", at="1700000000000000"),
        column="at",
    ),
    rejected(
        "B21",
        "a time without a zone, or an impossible time",
        "TYPE_MISMATCH",
        body("B21", at="2024-02-03T04:05:06"),
        body("B21", at="2024-02-03T04:05:06 Mars/Base"),
        body("B21", at="2024-02-30T00:00:00Z"),
        body("B21", at="2016-12-31T23:59:60Z"),
        column="at",
    ),
    accepted(
        "B21",
        "a time with nanoseconds; it is cut to microseconds, never rounded",
        body("B21-ns", at="1969-12-31T23:59:59.999999999Z"),
        user_id=None,
    ),
    rejected(
        "B21",
        "a time with more than nine digits of a second",
        "TYPE_MISMATCH",
        body("B21", at="2026-01-01T00:00:00.0000000000Z"),
        column="at",
    ),
    accepted("B22", "a time long ago", body("B22-old", at="0001-01-01T00:00:00Z"), user_id=None),
    accepted("B22", "the time zero", body("B22-zero", at="1970-01-01T00:00:00Z"), user_id=None),
    rejected(
        "B22",
        "a time outside of the years 1 to 9999",
        "TYPE_MISMATCH",
        body("B22", at="0001-01-01T00:00:00+02:00"),
        body("B22", at="9999-12-31T23:59:59-14:00"),
        body("B22", at="0000-01-01T00:00:00Z"),
        column="at",
    ),
    rejected(
        "B22",
        "an event time more than a day after its arrival",
        "EVENT_TIME_AHEAD",
        body("B22", at="2126-01-02T00:00:00Z"),
        body("B22", at="9999-01-01T00:00:00Z"),
        body("B22", at="2026-01-03T03:04:06Z"),
        column="at",
    ),
    accepted(
        "B23",
        "an event later than the watermark",
        body("B23", at="2020-01-01T00:00:00Z"),
        user_id=None,
    ),
    BadInput(
        "B24",
        "events out of order",
        (body("B24-2", at="2026-01-02T00:00:02Z"), body("B24-1", at="2026-01-02T00:00:01Z")),
        ((APPLIED,), (APPLIED,)),
    ),
    BadInput("B25", "a repeated event", (body("B25", user_id=1),) * 2, ((APPLIED,), (DUPLICATE,))),
    BadInput(
        "B26",
        "an event's id with another body; the first counts",
        (body("B26", user_id=1), body("B26", user_id=2)),
        ((APPLIED,), (DUPLICATE,)),
    ),
    accepted(
        "B27",
        "control characters, NUL, right-to-left marks, emoji",
        body(f"B27{ODD_TEXT}", note=ODD_TEXT),
        note=ODD_TEXT,
    ),
    accepted(
        "B28", "SQL, templates, HTML or formulas in a text", body("B28", note=HOSTILE), note=HOSTILE
    ),
    accepted(
        "B29",
        "an unknown version of the schema",
        body("B29", schema_version=99, user_id=3),
        user_id=3,
    ),
    rejected(
        "B30",
        "a message of another type",
        "MISSING_REQUIRED",
        b'{"type": "invoice", "total": 5}',
        column="event_id",
    ),
    rejected(
        "B31",
        "a schema registry's framing",
        "MALFORMED_JSON",
        b"\x00\x00\x00\x00\x05abc",
        column="a schema registry's framing",
    ),
    rejected("B32", "compressed bytes", "NOT_UTF8", gzip.compress(b"{}", mtime=0), column="gzip"),
    BadInput(
        "B33",
        "large, odd or repeated headers",
        (body("B33", user_id=4),),
        ((APPLIED,),),
        {"user_id": 4},
        headers=(("a", b"\xff" * 5000), ("a", b""), ("\u202e", b"x")),
    ),
    BadInput("B34", "a Kafka timestamp of -1", (body("B34-none"),), ((APPLIED,),), timestamp=-1),
    BadInput(
        "B34",
        "a Kafka timestamp in the future",
        (body("B34-ahead"),),
        ((APPLIED,),),
        timestamp=4_000_000_000_000,
    ),
)


def change(
    operation: str,
    key: int,
    position: int,
    *,
    record_key: int | None = None,
    commit: int | None = None,
    **fields: Any,
) -> Record:
    """A change of an order; without a commit each is a transaction of its own."""
    before = position - 1 if commit is None else commit
    image = {"order_id": key, "status": "placed", "amount": "1.50", **fields}
    value = {
        "op": operation,
        "before": {"order_id": key} if operation == "d" else None,
        "after": None if operation == "d" else image,
        "source": {"lsn": position, "sequence": json.dumps([str(before), str(position)])},
    }
    named = key if record_key is None else record_key
    return json.dumps({"order_id": named}).encode(), json.dumps(value).encode()


def with_fields(record: Record, **fields: Any) -> Record:
    return record[0], json.dumps({**json.loads(record[1] or b""), **fields}).encode()


def wrapped(record: Record) -> Record:
    payload = json.loads(record[1] or b"")
    return record[0], json.dumps({"schema": {"type": "struct"}, "payload": payload}).encode()


def rekeyed(old: int, new: int, position: int, *, commit: int, **row: Any) -> tuple[Record, ...]:
    """An update that changes the key, as Debezium tells it."""
    return (
        change("d", old, position, commit=commit),
        (json.dumps({"order_id": old}).encode(), None),
        change("c", new, position, commit=commit, **row),
    )


# Debezium's placeholder for a large value that an update left alone.
KEPT = "__debezium_unavailable_value"

CHANGE_CLASSES: tuple[BadInput, ...] = (
    BadInput(
        "B35",
        "the tombstone after a deletion",
        (change("d", 35, 100), (b'{"order_id": 35}', None)),
        ((APPLIED,), (IGNORED,)),
    ),
    rejected(
        "B36",
        "an unknown operation",
        "UNKNOWN_OPERATION",
        with_fields(change("u", 36, 100), op="x"),
        column="x",
    ),
    rejected("B36", "a document that is not a change", "NOT_A_CHANGE", b'{"order_id": 36}'),
    rejected(
        "B36",
        "an update without its row",
        "NOT_A_CHANGE",
        with_fields(change("u", 36, 100), after=None),
        column="after",
    ),
    BadInput(
        "B36", "a logical message", (with_fields(change("u", 36, 100), op="m"),), ((IGNORED,),)
    ),
    BadInput(
        "B36",
        "TRUNCATE; all rows committed before it are deleted",
        (change("c", 136, 5), (None, with_fields(change("t", 0, 10), after=None)[1])),
        ((SUPERSEDED,), (APPLIED,)),
    ),
    BadInput(
        "B37",
        "changes with and without the converter's schema",
        (change("c", 37, 100), wrapped(change("c", 137, 101))),
        ((APPLIED,), (APPLIED,)),
    ),
    BadInput(
        "B38",
        "a large value that was not sent; the old value stays",
        (change("c", 38, 90, amount="4.50"), change("u", 38, 100, status="paid", amount=KEPT)),
        ((SUPERSEDED,), (APPLIED,)),
        {"status": "paid", "twice": Decimal("9.00")},
    ),
    rejected(
        "B38",
        "a large value that was not sent, and no earlier row",
        "UNAVAILABLE_VALUE",
        change("u", 138, 100, amount=KEPT),
        column="twice",
    ),
    rejected(
        "B38",
        "a large value that was not sent but is used in an expression",
        "UNAVAILABLE_VALUE",
        change("u", 238, 100, status=KEPT),
        column="status",
    ),
    BadInput(
        "B39",
        "a delete without the old row",
        (with_fields(change("d", 39, 100), before=None),),
        ((APPLIED,),),
    ),
    BadInput(
        "B40",
        "a changed key: a delete and an insert",
        (change("c", 40, 90), change("d", 40, 100), change("c", 140, 101)),
        ((SUPERSEDED,), (APPLIED,), (APPLIED,)),
    ),
    rejected(
        "B41",
        "NaN where a decimal is declared",
        "TYPE_MISMATCH",
        change("u", 41, 100, amount="NaN"),
        column="amount",
    ),
    rejected(
        "B41",
        "a time before the year 1, or infinity",
        "TYPE_MISMATCH",
        change("u", 141, 100, placed_at="-0043-03-15T12:00:00Z"),
        change("u", 241, 101, placed_at="+999999999-12-31T23:59:59.999999999-18:00"),
        column="placed_at",
    ),
    BadInput(
        "B41",
        "a time with nanoseconds; it is cut to microseconds, never rounded",
        (change("u", 341, 100, placed_at="2026-01-01T23:59:59.999999999Z"),),
        ((APPLIED,),),
    ),
    rejected(
        "B41",
        "a time as the connector's number of micro- or nanoseconds",
        "TYPE_MISMATCH",
        change("u", 441, 100, placed_at=1767225600000000000),
        change("u", 541, 101, placed_at=1767225600000000),
        column="placed_at",
    ),
    BadInput(
        "B42",
        "an old change after the deletion",
        (change("d", 42, 200), change("u", 42, 100)),
        ((APPLIED,), (SUPERSEDED,)),
    ),
    BadInput(
        "B42",
        "a repeated change",
        (change("u", 142, 100), change("u", 142, 100)),
        ((APPLIED,), (DUPLICATE,)),
    ),
    BadInput(
        "B43",
        "a snapshot row older than an update",
        (change("u", 43, 200), change("r", 43, 100)),
        ((APPLIED,), (SUPERSEDED,)),
    ),
    rejected(
        "B44",
        "a change without a key",
        "KEY_MISSING",
        (b'{"order_id": null}', with_fields(change("u", 44, 100), after={"status": "x"})[1]),
        column="order_id",
    ),
    rejected(
        "B45",
        "a column whose type changed",
        "TYPE_MISMATCH",
        change("u", 45, 100, amount={"cents": 150}),
        column="amount",
    ),
    rejected(
        "B46",
        "a change of another table",
        "KEY_MISSING",
        (b'{"id": 1}', with_fields(change("c", 46, 100), after={"id": 1})[1]),
        column="order_id",
    ),
    rejected(
        "B47",
        "a Kafka key of another row than the change's",
        "KEY_MISMATCH",
        change("u", 47, 100, record_key=48),
        column="order_id",
    ),
    BadInput(
        "B48",
        "two keys swapped through a third",
        (
            *rekeyed(48, 348, 100, commit=90),
            *rekeyed(148, 48, 101, commit=90, status="was 148"),
            *rekeyed(348, 148, 102, commit=90, status="was 48"),
        ),
        (
            *((SUPERSEDED,), (IGNORED,), (SUPERSEDED,)),
            *((SUPERSEDED,), (IGNORED,), (APPLIED,)),
            *((APPLIED,), (IGNORED,), (APPLIED,)),
        ),
        {"status": "was 48"},
    ),
    BadInput(
        "B48",
        "two keys swapped under a deferred constraint; the last delete wins",
        (*rekeyed(448, 548, 100, commit=90), *rekeyed(548, 448, 101, commit=90, status="was 548")),
        ((SUPERSEDED,), (IGNORED,), (SUPERSEDED,), (APPLIED,), (IGNORED,), (APPLIED,)),
        {"status": "was 548"},
    ),
    rejected(
        "B52",
        "a change of a table without a primary key",
        "KEYLESS_CHANGE",
        (None, change("c", 49, 100)[1]),
        (None, change("u", 49, 101)[1]),
        (None, change("d", 49, 102)[1]),
    ),
    rejected(
        "B52",
        "a change of a table whose primary key has other columns than the declared keys",
        "KEY_COLUMNS_DIFFER",
        (b'{"order_id": 149, "line": 1}', change("c", 149, 100)[1]),
        column="line, order_id",
    ),
)
