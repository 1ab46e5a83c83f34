"""Compares the maintenance of views between two compiled projects."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from spark_jobs.definitions.vocabulary import Strategy
from spark_jobs.errors import LocatedError
from spark_jobs.graph.manifest import GoldEntry, MaintenanceStrategy, Manifest
from spark_jobs.graph.obstacle_place import obstacle_place


class ChangeOfRule(StrEnum):
    """How a view's maintenance changed."""

    BECAME_FULL = "became_full"
    # The author accepts it with ``strategy: full``.
    DECLARED_FULL = "declared_full"
    BECAME_INCREMENTAL = "became_incremental"
    OTHER_RULE = "other_rule"


class BecameFullError(LocatedError):
    """A view that was incremental, and would be refreshed in full each time."""

    condition = "BECAME_FULL"
    view: str
    obstacle: str
    problem: str
    suggestion: str
    primary = (
        "gold view {view!r} was maintained incrementally, but every refresh would now be full: "
        "{problem} ({obstacle})"
    )
    hint = "{remedy}"

    @property
    def remedy(self) -> str:
        return f"{self.suggestion} To accept full refreshes, declare strategy: full.".lstrip()


@dataclass(frozen=True, kw_only=True)
class ViewChange:
    """A view whose maintenance changed.

    Attributes:
        before: the old strategy; ``after`` is the new one.
        error: the obstacle, if it became full.
    """

    view: str
    change: ChangeOfRule
    before: MaintenanceStrategy
    after: MaintenanceStrategy
    error: BecameFullError | None = None

    @property
    def text(self) -> str:
        """The change as text."""
        if self.error is not None:
            return self.error.render()
        rules = f"{self.before.words} before, {self.after.words} now"
        return f"gold view {self.view!r} {_words(self.change)}: {rules}"

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object: the attributes, and the error's ``obstacle`` (None without one)."""
        obstacle = None if self.error is None else self.error.obstacle
        return {
            "view": self.view,
            "change": self.change.value,
            "before": self.before.value,
            "after": self.after.value,
            "obstacle": obstacle,
            "error": None if self.error is None else self.error.as_dict(),
        }


def changes_between(before: Manifest, after: Manifest, *, project: Path) -> list[ViewChange]:
    """The common views whose maintenance differs, worst first.

    Args:
        before: the old project.
        after: the new project.
        project: directory with the files of ``after``.
    """
    found = []
    for name in sorted(before.gold.keys() & after.gold.keys()):
        old, new = before.gold[name], after.gold[name]
        change = _change(old, new)
        if change is None:
            continue
        error = _error(new, project) if change is ChangeOfRule.BECAME_FULL else None
        rules = {"before": _rule(old), "after": _rule(new)}
        found.append(ViewChange(view=name, change=change, error=error, **rules))
    order = list(ChangeOfRule)
    return sorted(found, key=lambda one: (order.index(one.change), one.view))


def _change(old: GoldEntry, new: GoldEntry) -> ChangeOfRule | None:
    before, after = _rule(old), _rule(new)
    full = MaintenanceStrategy.FULL
    if before is after:
        return None
    if after is full:
        declared = new.strategy is Strategy.FULL
        return ChangeOfRule.DECLARED_FULL if declared else ChangeOfRule.BECAME_FULL
    return ChangeOfRule.BECAME_INCREMENTAL if before is full else ChangeOfRule.OTHER_RULE


def _rule(entry: GoldEntry) -> MaintenanceStrategy:
    """The strategy of refreshes."""
    if entry.maintenance is None or entry.strategy is Strategy.FULL:
        return MaintenanceStrategy.FULL
    return entry.maintenance.rule


def _error(entry: GoldEntry, project: Path) -> BecameFullError:
    text = (project / entry.file).read_text(encoding="utf-8")
    found = entry.maintenance
    return BecameFullError(
        entry.name,
        (found.obstacle if found else None) or "NO_RULE",
        (found.detail if found else None) or "no maintenance strategy was derived",
        (found.suggestion if found else None) or "",
        location=obstacle_place(entry, text),
    )


def _words(value: StrEnum) -> str:
    return value.value.replace("_", " ")
