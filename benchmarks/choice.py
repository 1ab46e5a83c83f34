"""How good the choice among our strategies was."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import mean, median

from benchmarks.records import IDLE, OURS, Cell

# What the choice may cost over the best strategy.
WITHIN = 1.15


@dataclass(frozen=True)
class Choice:
    """What was chosen for a query at a share, and what would have been best.

    A strategy costs the median over all refreshes that followed it: those of the view that
    chooses, and those of the views that declare it. So the choice is judged, and not how much two
    measurements of one strategy scatter.

    Attributes:
        cost: CPU-seconds of the strategies that were chosen, on average over the rounds.
        best: the strategy that costs least, and what it costs.
    """

    cost: float
    best: tuple[str, float]

    @property
    def near(self) -> bool:
        """Whether it cost about as much as the best."""
        return self.cost <= WITHIN * self.best[1]


def choice(cells: Mapping[tuple[str, float, str], Cell], query: str, share: float) -> Choice | None:
    """The choice for a query at a share; None where only one strategy was measured."""
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
