"""The interface of a target system, and the watermark of a sink."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

from spark_jobs.access.kafka import KafkaAccess
from spark_jobs.sinks.changes import Change
from spark_jobs.sinks.rows import RowCodec

# The version while a sink is being built, and so has only some of the rows.
BUILDING = -1


@dataclass(frozen=True)
class Watermark:
    """How far a sink has come; stored in the target system, with the rows.

    Attributes:
        table_id: id of the table; another one if it is recreated.
        version: the table's version that the sink equals, or ``BUILDING``.
        epoch: how often the sink was built, from 1.
        begun: the version that a delivery in several steps leads to. Until its last step the sink
            has rows of both versions.
        form: digest of where and how the sink delivers; empty in what older releases stored.
    """

    table_id: str
    version: int
    epoch: int
    begun: int | None = None
    form: str = field(default="", compare=False, repr=False)

    @classmethod
    def stored(cls, table_id: str, version: int, epoch: int, begun: int | None = None) -> Watermark:
        """The watermark of which a target system has stored the ``parts``."""
        identity, _, form = table_id.partition("/")
        return cls(identity, version, epoch, begun, form)

    @property
    def parts(self) -> dict[str, str | int | None]:
        """What a target system stores; table id and form are one text.

        >>> Watermark("t", 3, 1, form="f").parts
        {'table_id': 't/f', 'version': 3, 'epoch': 1, 'begun': None}
        """
        identity = f"{self.table_id}/{self.form}" if self.form else self.table_id
        return {
            "table_id": identity,
            "version": self.version,
            "epoch": self.epoch,
            "begun": self.begun,
        }

    @property
    def building(self) -> bool:
        return self.version == BUILDING

    @property
    def whole(self) -> bool:
        """Whether the sink equals the table at that version."""
        return not self.building and self.begun is None


def underway(before: Watermark | None, after: Watermark) -> Watermark:
    """The watermark during a delivery that takes several steps.

    After a kill the same delivery is repeated: one to a later version could miss a row that changed
    and changed back. A build just compares again.

    >>> underway(Watermark("t", 3, 1), Watermark("t", 5, 1))
    Watermark(table_id='t', version=3, epoch=1, begun=5)
    >>> underway(Watermark("t", 3, 1), Watermark("t", 5, 2)).building
    True
    """
    epoch = after.epoch if before is None else before.epoch
    if before is None or before.building or epoch != after.epoch:
        return replace(after, version=BUILDING, epoch=epoch)
    return replace(before, begun=after.version)


@dataclass(frozen=True)
class Addresses:
    """Addresses of the target systems; empty if not set. Hidden, as they may have passwords."""

    kafka: KafkaAccess | None = None
    postgres: str = field(default="", repr=False)
    redis: str = field(default="", repr=False)
    cassandra: str = field(default="", repr=False)


class Target(Protocol):
    """The target of one sink. A failure leaves it unchanged; it reopens itself after ``close``."""

    @property
    def codec(self) -> RowCodec: ...

    def watermark(self) -> Watermark | None:
        """The sink's watermark; None if it was never built."""
        ...

    def occupied(self) -> bool:
        """Whether the target has rows."""
        ...

    def missing(self) -> bool:
        """Whether the target does not exist."""
        ...

    def prepare(self) -> None:
        """Create the target, or adapt it to the table's columns."""
        ...

    def rows(self) -> Iterator[tuple[str, str]]:
        """Key and row of everything in the target, as text."""
        ...

    def deliver(
        self, changes: Iterable[Change], *, before: Watermark | None, after: Watermark
    ) -> int:
        """Deliver changes and the watermark together; returns the number of changes.

        Raises:
            SinkMovedError: the watermark is no longer ``before``.
        """
        ...

    def close(self) -> None:
        """Close the connection."""
        ...
