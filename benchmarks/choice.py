"""Evaluates the choice among maintenance strategies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import mean, median

from benchmarks.records import IDLE, OURS, Cell

# Accepted cost of the choice, relative to the best strategy.
WITHIN = 1.15


@dataclass(frozen=True)
class Choice:
    """The chosen and the best strategy for a query and a share of changes.

    The cost of a strategy is the median over all refreshes that used it: those of the view that
    chooses, and those of the views that declare it. So the scatter between two measurements of
    the same strategy does not count.

    Attributes:
        cost: CPU-seconds of the chosen strategies, on average over the rounds.
        best: the cheapest strategy, and its cost.
    """

    cost: float
    best: tuple[str, float]

    @property
    def near(self) -> bool:
        """Whether the cost is close to the best."""
        return self.cost <= WITHIN * self.best[1]


def choice(cells: Mapping[tuple[str, float, str], Cell], query: str, share: float) -> Choice | None:
    """The choice for a query and a share; None if only one strategy was measured."""
    measured: dict[str, list[float]] = defaultdict(list)
    for (of, at, contender), cell in cells.items():
        if (of, at) == (query, share) and contender.startswith(OURS) and contender != IDLE:
            for word, cpu in zip(cell.chosen_each, cell.cpu_each, strict=True):
                measured[word].append(cpu)
    if len(measured) < 2:
        return None
    costs = {word: median(some) for word, some in measured.items()}
    best = min(costs, key=lambda word: costs[word])
    chosen = cells[query, share, OURS].chosen_each
    return Choice(mean(costs[word] for word in chosen), (best, costs[best]))
