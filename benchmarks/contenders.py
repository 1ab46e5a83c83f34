"""The contenders: ways to refresh a query's result, each with its own table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from benchmarks.tpch.compare import Row, delta_rows
from benchmarks.tpch.duck import Duck
from benchmarks.tpch.project import text_of, view_of
from spark_jobs.definitions.vocabulary import Strategy
from spark_jobs.gold.refresh.steps import Refresher
from spark_jobs.graph.manifest import Maintenance, MaintenanceStrategy
from spark_jobs.sections import Engine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HANDWRITTEN = Path(__file__).with_name("handwritten")
_TABLE = re.compile(r"\bbronze\.(\w+)")
Versions = Mapping[str, int]
Result = tuple[list[str], list[Row]]


@dataclass(frozen=True)
class Lake:
    """The tables that all contenders read.

    Attributes:
        data: the folder of the tables.
        scale: TPC-H's scale factor.
        output: the folder for the results of contenders other than Tidemark.
    """

    data: Path
    scale: float
    output: Path

    def table(self, name: str, version: int) -> str:
        """A table at a version, in Spark SQL."""
        return f"delta.`{self.data / name}` VERSION AS OF {version}"


class Contender(Protocol):
    """A contender; ``run`` is measured.

    Attributes:
        engine: Tidemark's engine setting; "" for other contenders.
    """

    @property
    def name(self) -> str: ...
    @property
    def engine(self) -> str: ...

    def serves(self, query: str) -> bool:
        """Whether it supports this query."""

    def run(self, query: str, versions: Versions) -> str:
        """Refresh the result to these versions; returns the chosen strategy, "" without choice."""

    def result(self, query: str) -> Result:
        """The columns and rows of the current result."""


@dataclass(frozen=True)
class Ours:
    """Tidemark, by views that declare a strategy; they read the newest versions.

    Attributes:
        refresher: of a project with this setting of the engine.
    """

    refresher: Refresher
    strategy: Strategy
    engine: Engine

    @property
    def name(self) -> str:
        return view_of("ours", self.strategy)

    def serves(self, query: str) -> bool:
        """Whether this view chooses, or the query has more than one strategy."""
        if self.strategy is Strategy.AUTO:
            return True
        return self._maintenance(query).rule is not MaintenanceStrategy.FULL

    def run(self, query: str, versions: Versions) -> str:
        tick = "-".join(str(version) for version in versions.values())
        plan = self.refresher.run(self._view(query), tick=tick).plan
        rule = self._maintenance(query).rule
        did = f"{plan.word} ({rule})" if plan.word == "incremental" else plan.word
        actual = self.refresher.context.store.attempt(plan.attempt_id).actual or {}
        engine = actual.get("engine")
        return did if engine is None else f"{did}, {engine}"

    def result(self, query: str) -> Result:
        return delta_rows(self.refresher.context.published_at(self._view(query)))

    def _view(self, query: str) -> str:
        return view_of(query, self.strategy, self.engine)

    def _maintenance(self, query: str) -> Maintenance:
        found = self.refresher.context.entry(self._view(query)).maintenance
        return found or Maintenance(rule=MaintenanceStrategy.FULL)


@dataclass(frozen=True)
class SparkFull:
    """The SQL over the result's table, as Declarative Pipelines refresh a view."""

    spark: SparkSession
    lake: Lake
    name: str = "spark-full"
    engine: str = ""

    def serves(self, query: str) -> bool:
        return bool(query)

    def run(self, query: str, versions: Versions) -> str:
        frame = self.spark.sql(self._sql(query, versions))
        frame.write.format("delta").mode("overwrite").save(str(self._target(query)))
        return ""

    def result(self, query: str) -> Result:
        return delta_rows(self._target(query))

    def _sql(self, query: str, versions: Versions) -> str:
        return _TABLE.sub(
            lambda found: self.lake.table(found[1], versions[found[1]]),
            text_of(query, scale=self.lake.scale),
        )

    def _target(self, query: str) -> Path:
        return self.lake.output / self.name / query


@dataclass(frozen=True)
class Handwritten:
    """An incremental MERGE as an author would write it in dbt, from the tables' change feeds.

    The files ``<query>.build.sql`` and ``<query>.merge.sql`` name ``{target}``, and for each table
    ``{orders}``, ``{orders_before}`` and ``{orders_changes}``.
    """

    spark: SparkSession
    lake: Lake
    name: str = "handwritten"
    engine: str = ""
    seen: dict[str, Versions] = field(default_factory=dict)

    def serves(self, query: str) -> bool:
        return (HANDWRITTEN / f"{query}.merge.sql").exists()

    def run(self, query: str, versions: Versions) -> str:
        before = self.seen.get(query)
        if before is None:
            frame = self.spark.sql(self._sql(f"{query}.build", versions, versions))
            frame.write.format("delta").save(str(self._target(query)))
        else:
            self.spark.sql(self._sql(f"{query}.merge", before, versions))
        self.seen[query] = dict(versions)
        return ""

    def result(self, query: str) -> Result:
        columns, rows = delta_rows(self._target(query))
        wanted = SparkFull(self.spark, self.lake).result(query)[0]
        places = [columns.index(name) for name in wanted]
        return wanted, [tuple(row[place] for place in places) for row in rows]

    def _sql(self, file: str, before: Versions, after: Versions) -> str:
        names = {"target": f"delta.`{self._target(file.partition('.')[0])}`"}
        for name, version in after.items():
            names[name] = self.lake.table(name, version)
            names[f"{name}_before"] = self.lake.table(name, before[name])
            names[f"{name}_changes"] = (
                f"table_changes_by_path('{self.lake.data / name}', {before[name] + 1}, {version})"
            )
        return (HANDWRITTEN / f"{file}.sql").read_text(encoding="utf-8").format(**names)

    def _target(self, query: str) -> Path:
        return self.lake.output / self.name / query


@dataclass(frozen=True)
class DuckFull:
    """The SQL on DuckDB, into a Parquet file: what one process without a cluster needs."""

    lake: Lake
    name: str = "duckdb-full"
    engine: str = ""

    def serves(self, query: str) -> bool:
        return bool(query)

    def run(self, query: str, versions: Versions) -> str:
        self._target(query).parent.mkdir(parents=True, exist_ok=True)
        duck = Duck(self.lake.data, versions)
        duck.write(text_of(query, scale=self.lake.scale), self._target(query))
        return ""

    def result(self, query: str) -> Result:
        return Duck(self.lake.data).rows(f"SELECT * FROM '{self._target(query)}'")

    def _target(self, query: str) -> Path:
        return self.lake.output / self.name / f"{query}.parquet"


def contenders(
    refreshers: Mapping[Engine, Refresher], lake: Lake, strategies: Iterable[Strategy]
) -> tuple[Contender, ...]:
    """All contenders; Tidemark once for each strategy and engine setting."""
    spark = next(iter(refreshers.values())).context.spark
    return (
        *(
            Ours(refresher, strategy, engine)
            for strategy, (engine, refresher) in product(strategies, refreshers.items())
        ),
        SparkFull(spark, lake),
        Handwritten(spark, lake),
        DuckFull(lake),
    )
