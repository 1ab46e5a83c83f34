"""The plan of a change: what differs, what will be done, and what stands in the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from spark_jobs.deploy.change import Category, Change, Cost
from spark_jobs.deploy.compare import changes, setting_changes
from spark_jobs.deploy.contracts import broken_contracts
from spark_jobs.deploy.refusals import refusals
from spark_jobs.deploy.steps import Step, steps_of
from spark_jobs.errors import LakehouseError
from spark_jobs.graph.manifest import Manifest


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What applying the project would do.

    Attributes:
        project: its name.
        base: the deployment in force, which was compared with; None: nothing was applied yet.
        changes: every declaration and setting that differs.
        steps: what an apply does, in its order.
        problems: why it would be refused; nothing is done then.
        unfinished: the deployment whose open steps are among ``steps``.
        kept: tables that are declared no more and still there, by name, with who kept them.
    """

    project: str
    base: str | None
    changes: tuple[Change, ...]
    steps: tuple[Step, ...]
    problems: tuple[LakehouseError, ...] = ()
    unfinished: str | None = None
    kept: Mapping[str, str] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether the project is what runs; settings are taken up by ``stack up``."""
        return not self.changes and not self.steps

    @property
    def asks(self) -> tuple[str, ...]:
        """What a person must say yes to: what ends, and what is computed."""
        return tuple(
            f"{one.name}: {', '.join(work.value for work in one.work)}"
            for one in self.changes
            if one.destructive or one.expensive
        )

    @property
    def summary(self) -> str:
        """The plan in one line.

        >>> Plan(project="shop", base=None, changes=(), steps=()).summary
        'Nothing to do: what runs is what the project declares.'
        """
        if self.empty:
            return "Nothing to do: what runs is what the project declares."
        actions = Counter(one.action.value for one in self.changes)
        kinds = Counter(one.category for one in self.changes)
        said = ", ".join(f"{number} {action}" for action, number in actions.items())
        breaking = kinds[Category.BREAKING]
        head = said or "no declaration differs"
        return f"{head}; {breaking} breaking; {len(self.steps)} steps"

    def as_dict(self) -> dict[str, Any]:
        """The form for programs."""
        return {
            "project": self.project,
            "base": self.base,
            "unfinished": self.unfinished,
            "empty": self.empty,
            "changes": [one.as_dict() for one in self.changes],
            "steps": [str(one) for one in self.steps],
            "asks": list(self.asks),
            "problems": [one.as_dict() for one in self.problems],
            "kept": dict(self.kept),
        }


@dataclass(frozen=True, kw_only=True)
class Running:
    """What is in force.

    Attributes:
        deployment: its id; None where nothing was applied.
        settings: by key; secrets as digests.
        unfinished: a later deployment, or this one, that did not come to its end.
        open_steps: the steps that it left.
        kept: tables that were removed from the project and are still there.
    """

    deployment: str | None
    manifest: Manifest
    settings: Mapping[str, str]
    unfinished: str | None = None
    open_steps: tuple[Step, ...] = ()
    kept: Mapping[str, str] = field(default_factory=dict)


def plan_change(
    running: Running,
    project: Manifest,
    settings: Mapping[str, str],
    *,
    costs: Mapping[str, Cost],
    existing: Mapping[str, int],
    problems: Iterable[LakehouseError] = (),
    contract_breaks: Collection[str] = (),
) -> Plan:
    """Compare what runs with the project.

    Args:
        running: what is in force.
        project: the project, compiled.
        settings: its settings, in the form of ``Running.settings``.
        costs: what computing a gold view takes, by its name.
        existing: rows in the tables of new Debezium sources, by source.
        problems: what is known to stand in the way outside of the declarations.
        contract_breaks: views whose contract may be broken this once.
    """
    found = changes(running.manifest, project, costs=costs, existing=existing)
    # Without a deployment there is nothing to compare settings with.
    other = setting_changes(running.settings, settings) if running.deployment else []
    every = (*found, *other)
    return Plan(
        project=project.project,
        base=running.deployment,
        changes=every,
        steps=steps_of(every, running.manifest, project, carried=running.open_steps),
        problems=(
            *refusals(running.manifest, project),
            *broken_contracts(running.manifest, project, allowed=contract_breaks),
            *problems,
        ),
        unfinished=running.unfinished,
        kept=dict(running.kept),
    )
