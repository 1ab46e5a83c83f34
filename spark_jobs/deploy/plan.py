"""The plan of a change: differences, steps, problems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from spark_jobs.deploy.change import Category, Change, Cost
from spark_jobs.deploy.compare import changes
from spark_jobs.deploy.contracts import broken_contracts
from spark_jobs.deploy.kept_settings import setting_changes
from spark_jobs.deploy.refusals import refusals
from spark_jobs.deploy.steps import Step, StepKind, steps_of
from spark_jobs.errors import LakehouseError
from spark_jobs.graph.manifest import Manifest


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What applying the project would do.

    Attributes:
        project: name of the project.
        base: the deployment in force; None: nothing was applied yet.
        changes: declarations and settings that differ.
        steps: the steps of an apply, in order.
        problems: why it would be refused.
        unfinished: the deployment whose open steps are among ``steps``.
        kept: tables that are no longer declared but still exist: time of removal by name.
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
        """Whether the project is running already; ``stack up`` applies settings."""
        return not self.changes and not self.steps

    @property
    def asks(self) -> tuple[str, ...]:
        """Steps that a person must confirm: what is stopped, and what is computed."""
        return tuple(
            f"{one.name}: {', '.join(work.value for work in one.work)}"
            for one in self.changes
            if one.destructive or one.expensive
        )

    @property
    def summary(self) -> str:
        """The plan on one line.

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
        """As a JSON object: the attributes, and the properties ``empty`` and ``asks``."""
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
    """The state in force.

    Attributes:
        deployment: its id; None if nothing was applied.
        settings: by key; secrets as digests.
        unfinished: this or a later deployment that did not finish.
        open_steps: its open steps.
        kept: tables that were removed from the project but still exist.
        former: the last declarations of those that the project declares again.
        whole: whether this release can read the whole manifest.
    """

    deployment: str | None
    manifest: Manifest
    settings: Mapping[str, str]
    unfinished: str | None = None
    open_steps: tuple[Step, ...] = ()
    kept: Mapping[str, str] = field(default_factory=dict)
    former: Manifest | None = None
    whole: bool = True

    @property
    def stored(self) -> Manifest:
        """The manifest with the former declarations: what the stored tables were written by."""
        if self.former is None:
            return self.manifest
        both = {
            layer: {**getattr(self.former, layer), **getattr(self.manifest, layer)}
            for layer in ("sources", "silver")
        }
        return self.manifest.model_copy(update=both)


def plan_change(
    running: Running,
    project: Manifest,
    settings: Mapping[str, str],
    *,
    costs: Mapping[str, Cost],
    existing: Mapping[str, int],
    problems: Iterable[LakehouseError] = (),
    contract_breaks: Collection[str] = (),
    elsewhere: bool = False,
    today: date,
) -> Plan:
    """Compare the running state with the project.

    Args:
        running: the state in force.
        project: the compiled project.
        settings: its settings, in the form of ``Running.settings``.
        costs: costs of computing gold views, by name.
        existing: row counts of the tables of new Debezium sources, by source.
        problems: known problems outside of the declarations.
        contract_breaks: views whose contract may be broken this once.
        elsewhere: whether Kafka Connect is not part of the local stack.
        today: the day in UTC.
    """
    found = changes(
        running.manifest,
        project,
        costs=costs,
        existing=existing,
        kept=running.kept.keys(),
        # It may have made the connector, which reads by itself only what it captures at first.
        connected=any(one.kind is StepKind.CONNECTOR for one in running.open_steps),
        elsewhere=elsewhere,
    )
    # Without a deployment there are no settings to compare with.
    other = setting_changes(running.settings, settings) if running.deployment else []
    every = (*found, *other)
    return Plan(
        project=project.project,
        base=running.deployment,
        changes=every,
        steps=steps_of(every, running.manifest, project, carried=running.open_steps),
        problems=(
            *refusals(running.stored, project),
            *broken_contracts(running.manifest, project, today=today, allowed=contract_breaks),
            *problems,
        ),
        unfinished=running.unfinished,
        kept=dict(running.kept),
    )
