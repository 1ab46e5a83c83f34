"""A TPC-H project whose tables another writer changes twice."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.tpch.duck import Duck
from benchmarks.tpch.project import text_of, view_of
from spark_jobs.definitions.vocabulary import Strategy
from spark_jobs.gold.refresh.steps import Refresher

SCALE = 0.01
SEED = 20
# The changed share of each refresh set.
SHARES = (0.02, 0.2)


@dataclass(frozen=True)
class Tpch:
    """The project at each of its states: 0 as generated, then one for each refresh set.

    Attributes:
        states: the version of every table in each state; the tick ``t<n>`` pins those of state n.
        refresher: over one session for all tests.
    """

    lake: Path
    states: tuple[dict[str, int], ...]
    refresher: Refresher

    @staticmethod
    def view(name: str) -> str:
        """The view of a query, which follows changes however large they are."""
        return view_of(name, Strategy.INCREMENTAL)

    def wanted(self, name: str, state: int) -> tuple[list[str], list[tuple[object, ...]]]:
        """What DuckDB gives for a query in a state."""
        return Duck(self.lake, self.states[state]).rows(text_of(name, scale=SCALE))
