"""What every system that a sink delivers to can do, and how far a sink has come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

from spark_jobs.access.kafka import KafkaAccess
from spark_jobs.sinks.changes import Change
from spark_jobs.sinks.rows import RowCodec

# A sink that is being built holds some version's rows in part: no version of the table.
BUILDING = -1


@dataclass(frozen=True)
class Watermark:
    """How far a sink has come; it is stored in the system itself, with the rows.

    Attributes:
        table_id: tells the table from another one made at the same place.
        version: the table's version that the sink equals, or ``BUILDING``.
        epoch: how often the sink was built, from 1.
        begun: the version that a delivery in several steps is to reach, from its first step to its
            last. Until then the sink holds some rows of either version.
    """

    table_id: str
    version: int
    epoch: int
    begun: int | None = None

    @property
    def building(self) -> bool:
        return self.version == BUILDING

    @property
    def whole(self) -> bool:
        """Whether the sink holds what its table had at the version."""
        return not self.building and self.begun is None


def underway(before: Watermark | None, after: Watermark) -> Watermark:
    """The watermark from the first step of a delivery to its last, where it takes several.

    Whoever finds it after a kill makes the same delivery again: one to a later version could leave
    out a row that changed and changed back. A build is compared again, whatever it was to reach.

    >>> underway(Watermark("t", 3, 1), Watermark("t", 5, 1))
    Watermark(table_id='t', version=3, epoch=1, begun=5)
    >>> underway(Watermark("t", 3, 1), Watermark("t", 5, 2)).building
    True
    """
    epoch = after.epoch if before is None else before.epoch
    if before is None or before.building or epoch != after.epoch:
        return Watermark(after.table_id, BUILDING, epoch)
    return replace(before, begun=after.version)


@dataclass(frozen=True)
class Addresses:
    """Where the systems are; empty where nothing says. Their passwords are not shown."""

    kafka: KafkaAccess | None = None
    postgres: str = field(default="", repr=False)
    redis: str = field(default="", repr=False)
    cassandra: str = field(default="", repr=False)


class Target(Protocol):
    """One sink's place. A failure leaves it as it was; after ``close`` it opens itself again."""

    @property
    def codec(self) -> RowCodec: ...

    def watermark(self) -> Watermark | None:
        """How far the sink has come; None where it was never built."""
        ...

    def occupied(self) -> bool:
        """Whether the place holds rows."""
        ...

    def missing(self) -> bool:
        """Whether the place itself is not there."""
        ...

    def prepare(self) -> None:
        """Make the place, or give it the columns that the table has."""
        ...

    def rows(self) -> Iterator[tuple[str, str]]:
        """Key and row of everything that the place holds, as text."""
        ...

    def deliver(
        self, changes: Iterable[Change], *, before: Watermark | None, after: Watermark
    ) -> int:
        """Deliver changes and the watermark together; returns how many changes there were.

        Raises:
            SinkMovedError: the watermark is not ``before`` any more.
        """
        ...

    def close(self) -> None: ...
