"""The steps of a walk, made from its seed. Pure."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice

# How often each is drawn, beside the others.
ACTIONS = {
    "load": 10,
    "large transaction": 3,
    "transaction taken back": 2,
    "alter table": 1,
    "refresh a view": 5,
    "refresh all views": 1,
    "roll a view back": 1,
    "release a view": 2,
    "replay a view": 2,
    "verify a view": 2,
    "maintain": 1,
    "restart a part": 1,
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
    "litter": 2,
}
QUIET = "quiet"
# Steps between two quiet points.
_FEWEST, _MOST = 20, 40


@dataclass(frozen=True)
class Step:
    """One step; what it does in detail comes from its own seed."""

    number: int
    name: str
    seed: int

    @property
    def is_fault(self) -> bool:
        return self.name in FAULTS


def steps(seed: int) -> Iterator[Step]:
    """Steps without end; a prefix of a walk is the walk of its seed.

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
    """The first steps of a walk, and a quiet point at the end: what a failure is shrunk to."""
    found = first(many, seed=seed)
    return found if found and found[-1].name == QUIET else [*found, Step(many + 1, QUIET, seed)]
