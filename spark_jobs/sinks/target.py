"""What every system that a sink delivers to can do, and how far a sink has come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
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
    """

    table_id: str
    version: int
    epoch: int

    @property
    def building(self) -> bool:
        return self.version == BUILDING


@dataclass(frozen=True)
class Addresses:
    """Where the systems are; empty where nothing says. Their passwords are not shown."""

    kafka: KafkaAccess | None = None
    postgres: str = field(default="", repr=False)
    redis: str = field(default="", repr=False)


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
