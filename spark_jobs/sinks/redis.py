"""A sink's keys in Redis: a hash or a JSON text per row, under a prefix.

Rows and watermark of a delivery change in one MULTI/EXEC. A very large delivery takes several: the
first marks the watermark as in progress, the last advances it, and a killed delivery is repeated.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

import redis

from spark_jobs.definitions.vocabulary import RedisFormat
from spark_jobs.graph.manifest import SinkEntry
from spark_jobs.sinks.changes import Change
from spark_jobs.sinks.errors import SinkMovedError, SinkUnreachableError, SinkValueError
from spark_jobs.sinks.hashes import address, fields, values_of
from spark_jobs.sinks.rows import RowCodec, dumped
from spark_jobs.sinks.target import Watermark, underway
from spark_jobs.state.failpoints import failpoint

# Limits the size of a transaction, which blocks the server.
ROWS_AT_ONCE = 5_000
KEYS_AT_ONCE = 1_000
# Marks a key under the prefix that is not a row of the sink.
_STRANGE = "__key"


@dataclass
class RedisTarget:
    """A sink's keys."""

    sink: SinkEntry
    codec: RowCodec
    address: str = field(repr=False)
    _opened: redis.Redis | None = None

    def watermark(self) -> Watermark | None:
        with self._translated_errors():
            return _watermark(dict(self._client.hgetall(self._mark)))

    def occupied(self) -> bool:
        with self._translated_errors():
            return next(self._keys(), None) is not None

    def missing(self) -> bool:
        return False

    def prepare(self) -> None:
        """Nothing: Redis creates keys on write."""

    def rows(self) -> Iterator[tuple[str, str]]:
        with self._translated_errors():
            keys = self._keys()
            seen: set[bytes] = set()
            while some := [one for one in islice(keys, KEYS_AT_ONCE) if one not in seen]:
                seen.update(some)
                pipeline = self._client.pipeline(transaction=False)
                for key in some:
                    pipeline.get(key) if self._as_text else pipeline.hgetall(key)
                values = pipeline.execute(raise_on_error=False)
                for key, value in zip(some, values, strict=True):
                    yield self._row(key, value)

    def deliver(
        self, changes: Iterable[Change], *, before: Watermark | None, after: Watermark
    ) -> int:
        count, expected = 0, before
        rest = iter(changes)
        some = list(islice(rest, ROWS_AT_ONCE))
        while True:
            following = list(islice(rest, 1))
            reached = underway(before, after) if following else after
            with self._translated_errors():
                self._transaction(some, expected, reached)
            count, expected = count + len(some), reached
            if not following:
                return count
            some = list(islice(chain(following, rest), ROWS_AT_ONCE))

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    @property
    def _client(self) -> redis.Redis:
        if self._opened is None:
            self._opened = redis.Redis.from_url(
                self.address,
                socket_timeout=30,
                socket_connect_timeout=5,
                client_name=f"tidemark-{self.sink.name}",
            )
        return self._opened

    @property
    def _mark(self) -> str:
        return f"tidemark:sink:{self.sink.name}"

    @property
    def _as_text(self) -> bool:
        return self.sink.format is RedisFormat.JSON

    def _keys(self) -> Iterator[bytes]:
        found: Iterator[bytes] = self._client.scan_iter(
            match=f"{self.sink.target}*", count=KEYS_AT_ONCE
        )
        return found

    def _transaction(
        self, changes: list[Change], before: Watermark | None, after: Watermark
    ) -> None:
        with self._client.pipeline(transaction=True) as pipeline:
            pipeline.watch(self._mark)  # type: ignore[no-untyped-call]
            if _watermark(dict(pipeline.hgetall(self._mark))) != before:
                raise SinkMovedError(self.sink.name)
            marked: dict[Any, Any] = {
                name: value for name, value in after.parts.items() if value is not None
            }
            pipeline.multi()
            for change in changes:
                self._write(pipeline, change)
            pipeline.delete(self._mark)
            pipeline.hset(self._mark, mapping=marked)
            failpoint("sink_delivered")
            try:
                pipeline.execute()
            except redis.WatchError as error:
                raise SinkMovedError(self.sink.name) from error

    def _write(self, pipeline: Any, change: Change) -> None:
        key = self._address(change.key)
        if change.after is None:
            pipeline.delete(key)
        elif self._as_text:
            pipeline.set(key, change.after)
        else:
            # Delete first: HSET keeps fields that are not given.
            pipeline.delete(key)
            pipeline.hset(key, mapping=fields(change.after))

    def _address(self, key: str) -> bytes:
        values = json.loads(key)
        found = values.get(_STRANGE) or self.sink.target + address(values.values())
        return str(found).encode(errors="surrogateescape")

    def _row(self, key: bytes, value: Any) -> tuple[str, str]:
        """A row as the codec writes it; a foreign value gets its Redis key as the key."""
        try:
            row = self.codec.row(
                json.loads(value) if self._as_text else values_of(value, self.codec.schema)
            )
            found = self.codec.key_of(row)
            if self._address(found) == key:
                return found, row
        except (ValueError, TypeError, AttributeError, ArithmeticError):
            pass
        return dumped({_STRANGE: key.decode(errors="surrogateescape")}), ""

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """After a failure close the connection, and raise one of our errors."""
        name = self.sink.name
        try:
            yield
        except (redis.ConnectionError, redis.TimeoutError) as error:
            self.close()
            raise SinkUnreachableError(name, "Redis", str(error)) from error
        except redis.RedisError as error:
            self.close()
            raise SinkValueError(name, str(error)) from error
        except BaseException:
            self.close()
            raise


def _watermark(found: dict[Any, Any]) -> Watermark | None:
    if not found:
        return None
    texts = {name.decode(): value.decode() for name, value in found.items()}
    begun = int(texts["begun"]) if "begun" in texts else None
    return Watermark.stored(texts["table_id"], int(texts["version"]), int(texts["epoch"]), begun)
