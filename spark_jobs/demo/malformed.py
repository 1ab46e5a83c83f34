"""Malformed records: one function per malformation."""

from __future__ import annotations

import json
import random
from typing import assert_never

from spark_jobs.demo.events import Body
from spark_jobs.demo.operations import Malformation

# Above the default of streams.max_record_bytes, and below what the broker accepts.
OVERSIZED_BYTES = 1_010_000
# Required fields of each topic, in addition to id and time.
REQUIRED_FIELD = {
    "view_events": "title_id",
    "click_events": "user_id",
    "login_attempts": "ip",
    "cart_events": "item",
    "account_events": "amount",
    "inventory_updates": "stock_remaining",
    "request_log": "latency_ms",
}
# Oversized records are rare, because each is as large as a thousand others.
WEIGHTS = {kind: 1 if kind is Malformation.OVERSIZED else 12 for kind in Malformation}


def encode(body: Body) -> bytes:
    """An event as JSON in UTF-8."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def draw(rng: random.Random) -> Malformation:
    """A random malformation; all occur in a long run."""
    return rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]


def spoil(kind: Malformation, topic: str, body: Body) -> bytes | None:
    """The value of a record that is malformed in the given way; None is a tombstone."""
    match kind:
        case Malformation.TRUNCATED_JSON:
            whole = encode(body)
            return whole[: len(whole) // 2]
        case Malformation.EMPTY_VALUE:
            return b""
        case Malformation.WRONG_TYPE:
            return encode({**body, "event_time": "the day before yesterday"})
        case Malformation.ARRAY:
            return b"[" + encode(body) + b"]"
        case Malformation.INVALID_UTF8:
            return encode(body)[:-1] + b',"note":"\xff\xfe"}'
        case Malformation.MISSING_ID | Malformation.MISSING_FIELD:
            missing = "event_id" if kind is Malformation.MISSING_ID else REQUIRED_FIELD[topic]
            return encode({name: value for name, value in body.items() if name != missing})
        case Malformation.TOMBSTONE:
            return None
        case Malformation.OVERSIZED:
            return encode({**body, "note": "x" * OVERSIZED_BYTES})
        case _:
            assert_never(kind)
