"""Where maintenance rules plug in: a rule derives, from a view and its changes, how to apply them.

A rule may only say yes where applying the changes provably gives what a full refresh would give.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from spark_jobs.graph.manifest import GoldEntry
from spark_jobs.planning.changes import InputChange


@dataclass(frozen=True)
class Derived:
    """A rule that can maintain the view through these changes."""

    rule: str
    text: str


@dataclass(frozen=True)
class Refused:
    """Why a rule cannot."""

    rule: str
    text: str


class MaintenanceRule(Protocol):
    """Decides whether one rule maintains a view; pure."""

    def __call__(self, view: GoldEntry, changes: Sequence[InputChange]) -> Derived | Refused: ...


# In order of preference; the first that derives wins.
RULES: tuple[MaintenanceRule, ...] = ()


def derive_rule(
    view: GoldEntry,
    changes: Sequence[InputChange],
    *,
    rules: Sequence[MaintenanceRule] = RULES,
) -> Derived | None:
    """The first rule that maintains the view through the changes, or None."""
    for rule in rules:
        answer = rule(view, changes)
        if isinstance(answer, Derived):
            return answer
    return None
