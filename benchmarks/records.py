"""The measurements of a run, and facts about the machine."""

from __future__ import annotations

import os
import platform
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any, Self

import psutil

from benchmarks.measure import Cost
from spark_jobs.sections import SparkSettings
from spark_jobs.settings import REPOSITORY

FULL, OURS, IDLE = "spark-full", "ours", "ours, idle"
# Orders at scale factor 1.
ORDERS = 1_500_000


@dataclass(frozen=True)
class Record:
    """One measured refresh.

    Attributes:
        chosen: the strategy, if the contender had a choice.
        engine: Tidemark's engine setting; "" for other contenders.
    """

    query: str
    share: float
    contender: str
    chosen: str
    cost: Cost
    engine: str = ""


@dataclass(frozen=True)
class Cell:
    """The refreshes of a query at one share by one contender, with their medians."""

    query: str
    share: float
    contender: str
    engine: str
    cpu: float
    wall: float
    read: int
    written: int
    peak: int
    others: float
    cpu_each: tuple[float, ...]
    chosen_each: tuple[str, ...]

    @property
    def chosen(self) -> str:
        """The distinct strategies that were chosen."""
        return ", ".join(dict.fromkeys(self.chosen_each))


@dataclass(frozen=True, kw_only=True)
class Facts:
    """The machine and the parameters of a run; times are in UTC, memory in bytes."""

    started_at: str
    finished_at: str
    commit: str
    seed: int
    java_options: str
    heap: str
    processor: str
    cores: int
    memory: int
    load: tuple[tuple[float, ...], ...]
    versions: dict[str, str]

    def finished(self) -> Self:
        """A copy with the time and the machine's load at the end."""
        return replace(self, finished_at=_now(), load=(*self.load, os.getloadavg()))


@dataclass(frozen=True, kw_only=True)
class ScaleFacts(Facts):
    """Facts of a run over TPC-H."""

    scale: float
    repetitions: int
    keys: str = "random"

    @property
    def orders(self) -> int:
        """Number of orders at the scale."""
        return round(ORDERS * self.scale)


@dataclass(frozen=True)
class Run:
    """A complete run; every result was checked."""

    facts: ScaleFacts
    records: list[Record]

    @property
    def engines(self) -> list[str]:
        """The engine settings under which Tidemark was measured."""
        return sorted({one.engine for one in self.records if one.engine})

    def cells(self, engine: str) -> dict[tuple[str, float, str], Cell]:
        """Cells by query, share and contender: Tidemark's with one engine, and all others."""
        found: dict[tuple[str, float, str], list[Record]] = defaultdict(list)
        for one in self.records:
            if one.engine in {"", engine}:
                found[one.query, one.share, one.contender].append(one)
        return {key: _cell(key, some) for key, some in found.items()}

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "facts": asdict(self.facts),
            "cells": {
                engine: [asdict(one) for one in self.cells(engine).values()]
                for engine in self.engines
            },
        }


def speedup(cells: dict[tuple[str, float, str], Cell], query: str, share: float) -> float:
    """CPU time of Spark's full recomputation, divided by ours."""
    return cells[query, share, FULL].cpu / cells[query, share, OURS].cpu


def mean(values: Iterable[float]) -> float:
    """The geometric mean."""
    return geometric_mean(list(values))


def run_facts(*, seed: int, spark: SparkSettings) -> Facts:
    """The facts of a run that starts now."""
    return Facts(
        started_at=_now(),
        finished_at="",
        commit=_commit(),
        seed=seed,
        java_options=spark.java_options,
        heap=spark.driver_memory,
        processor=_processor(),
        cores=os.cpu_count() or 0,
        memory=psutil.virtual_memory().total,
        load=(os.getloadavg(),),
        versions={
            name: version(name) for name in ("pyspark", "delta-spark", "deltalake", "duckdb")
        },
    )


def _cell(key: tuple[str, float, str], records: list[Record]) -> Cell:
    costs = [one.cost for one in records]
    query, share, contender = key
    return Cell(
        query=query,
        share=share,
        contender=contender,
        engine=records[0].engine,
        cpu=round(median(one.cpu for one in costs), 3),
        wall=round(median(one.wall for one in costs), 3),
        read=round(median(one.read for one in costs)),
        written=round(median(one.written for one in costs)),
        peak=max(one.peak for one in costs),
        others=round(median(one.others for one in costs), 2),
        cpu_each=tuple(round(one.cpu, 3) for one in costs),
        chosen_each=tuple(one.chosen for one in records),
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _commit() -> str:
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude=*"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip()


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
