"""The steps of a walk, generated from its seed; pure."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice

# Weights of the random choice. A new order or weight changes the walk of every seed.
ACTIONS = {
    "load": 10,
    "large transaction": 3,
    "rolled-back transaction": 2,
    "alter table": 1,
    "refresh a view": 5,
    "refresh all views": 1,
    "roll a view back": 1,
    "release a view": 2,
    "replay a view": 2,
    "verify a view": 2,
    "rebuild a table": 2,
    "maintain": 1,
    "trim logs": 3,
    "restart a part": 1,
    "deploy": 2,
    "change the new table": 2,
    "truncate a table": 1,
    "change a setting": 1,
    "snapshot again": 1,
    "pause": 2,
}
FAULTS = {
    "kill a part": 6,
    "kill a child": 3,
    "kill two parts": 2,
    "freeze a part": 3,
    "kill a refresh": 4,
    "kill a replay": 1,
    "fill the disk": 1,
    "leave files of a dead writer": 2,
    "damage a checkpoint": 1,
    "kill Connect in a transaction": 1,
    "kill a snapshot": 1,
    "lose Connect's offsets": 1,
    "outgrow the slot": 1,
    "leave a transaction open": 2,
    "cut a part off": 3,
    "lose packets": 2,
    "forget connections": 3,
}
QUIET = "quiet"
# Steps between two quiet points.
_FEWEST, _MOST = 20, 40


@dataclass(frozen=True)
class Step:
    """One step; its own seed determines the details."""

    number: int
    name: str
    seed: int

    @property
    def is_fault(self) -> bool:
        return self.name in FAULTS


def steps(seed: int) -> Iterator[Step]:
    """An endless sequence of steps; the same seed always gives the same ones.

    >>> [one.name for one in first(3, seed=7)] == [one.name for one in first(5, seed=7)[:3]]
    True
    """
    rng = random.Random(seed)
    names, weights = zip(*{**ACTIONS, **FAULTS}.items(), strict=True)
    until_quiet = rng.randint(_FEWEST, _MOST)
    for number in count(1):
        if until_quiet == 0:
            name, until_quiet = QUIET, rng.randint(_FEWEST, _MOST)
        else:
            [name] = rng.choices(names, weights)
            until_quiet -= 1
        yield Step(number, name, rng.randrange(2**31))


def first(many: int, *, seed: int) -> list[Step]:
    """The first steps of a walk."""
    return list(islice(steps(seed), many))


def prefix(many: int, *, seed: int) -> list[Step]:
    """The first steps of a walk, with a quiet point at the end, where data is compared."""
    found = first(many, seed=seed)
    return found if found and found[-1].name == QUIET else [*found, Step(many + 1, QUIET, seed)]
