"""The results of a run by section, each with the machine and the time of the measurement."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Generic, Self, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict

from benchmarks.measure import Cost
from benchmarks.records import Facts

Found = TypeVar("Found")


class VoidError(Exception):
    """A result is wrong; its section is invalid."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Spread(_Frozen):
    """Percentiles of some values, in seconds."""

    p50: float
    p95: float
    most: float
    count: int

    @classmethod
    def of(cls, values: np.ndarray) -> Self:
        """The percentiles of at least one value.

        >>> Spread.of(np.array([1.0, 2.0, 3.0]))
        Spread(p50=2.0, p95=2.9, most=3.0, count=3)
        """
        p50, p95, most = (round(float(one), 3) for one in np.quantile(values, [0.5, 0.95, 1.0]))
        return cls(p50=p50, p95=p95, most=most, count=values.size)


class Memory(_Frozen):
    """Resident memory over a run, in bytes, and how fast it grew in the run's second half."""

    peak: int
    growth_per_minute: int

    @classmethod
    def of(cls, samples: Sequence[tuple[float, int]]) -> Self:
        """The memory of a run.

        Args:
            samples: seconds and bytes, in order of time.

        >>> Memory.of([(0.0, 9), (60.0, 10), (120.0, 20), (180.0, 30)])
        Memory(peak=30, growth_per_minute=10)
        """
        late = samples[len(samples) // 2 - 1 :] if len(samples) > 2 else samples
        growth = 0.0
        if len(late) > 1:
            times, sizes = zip(*late, strict=True)
            growth = 60 * float(np.polyfit(times, sizes, 1)[0])
        return cls(peak=max(size for _, size in samples), growth_per_minute=round(growth))


class Engines(StrEnum):
    """The settings ``streams.engine`` and ``gold.engine`` of a run."""

    # Both of them.
    SPARK = "spark"
    AUTO = "auto"
    # Neither is set.
    DEFAULTS = "defaults"


class Pace(_Frozen):
    """The triggers of a run, in seconds, and the engines of its streams and of gold."""

    bronze: float
    silver: float
    gold: float
    # Results of earlier releases do not name it.
    engine: Engines = Engines.AUTO

    def __str__(self) -> str:
        return f"{self.bronze:g} / {self.silver:g} / {self.gold:g} s, {self.engine}"


class Ingest(_Frozen):
    """The ingestion rate of a full topic into bronze.

    Attributes:
        events: of the batches after the first one.
        seconds: from the first batch's commit to the last one's.
        cost: of the streaming application during about that time.
    """

    pace: Pace
    events: int
    event_bytes: int
    seconds: float
    cost: Cost

    @property
    def rate(self) -> float:
        """Events a second."""
        return self.events / self.seconds


class Chain(_Frozen):
    """Events at a rate, and their latency from Kafka to each layer's commit.

    Attributes:
        wanted: requested events per second; ``rate`` is what the machine sent.
        idle: the application's cost of a minute without events.
        cost: its cost of the minutes with events, until all had arrived.
        files: files of each table after the run; ``commits`` how many wrote rows.
    """

    pace: Pace
    wanted: int
    rate: float
    events: int
    bronze: Spread
    silver: Spread
    gold: Spread
    idle: Cost
    cost: Cost
    memory: Memory
    files: dict[str, int]
    commits: dict[str, int]


class Moment(_Frozen):
    """The application's memory at a time of a run, in bytes.

    Attributes:
        resident: of all its processes.
        heap: what is used of the JVM's heap, garbage too; None where it did not tell.
        old: what was left in the old generation by its last collection; None where it did not
            tell, 0 before the first.
        files: of all tables.
    """

    seconds: float
    resident: int
    heap: int | None
    old: int | None
    files: int


class Steady(_Frozen):
    """Events at a constant rate, and the memory during that time.

    Attributes:
        cost: of the whole run.
    """

    pace: Pace
    rate: int
    events: int
    cost: Cost
    moments: list[Moment]

    @property
    def growth_per_hour(self) -> int:
        """By how many bytes resident memory grew in an hour, by the run's second half."""
        told = [(one.seconds, one.resident) for one in self.moments]
        return 60 * Memory.of(told).growth_per_minute


class Upserts(_Frozen):
    """Scattered changes of a table by each way, one cost for each round."""

    rows: int
    changes: int
    table_bytes: int
    costs: dict[str, list[Cost]]


class Peer(_Frozen):
    """Windowed counts of a full topic, by Tidemark and by Flink.

    Attributes:
        missing: why Flink was not measured; empty where it was.
    """

    events: int
    pace: Pace
    ours: Cost
    flink: Cost | None = None
    flink_version: str = ""
    missing: str = ""


class Section(_Frozen, Generic[Found]):
    """A section's results, with the machine and the time."""

    facts: Facts
    found: Found


class Results(_Frozen):
    """All measured sections; a new run replaces its own."""

    ingest: Section[list[Ingest]] | None = None
    latency: Section[list[Chain]] | None = None
    upserts: Section[Upserts] | None = None
    peer: Section[Peer] | None = None
    memory: Section[Steady] | None = None

    @classmethod
    def read(cls, file: Path) -> Self:
        """The results of earlier runs; none without a file."""
        if not file.exists():
            return cls()
        return cls.model_validate_json(file.read_text(encoding="utf-8"))
