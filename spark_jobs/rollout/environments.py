"""Plans, builds and drops virtual environments; production's data is only read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from spark_jobs.deploy.change import Cost
from spark_jobs.deploy.environment_errors import EnvironmentBlockedError
from spark_jobs.deploy.environments import (
    checked_name,
    gold_inputs,
    input_problems,
    marks,
    to_build,
    with_views,
)
from spark_jobs.deploy.errors import NothingAppliedError
from spark_jobs.errors import LakehouseError, ProblemsError
from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.environment.build import build, pinned, pins_as_json
from spark_jobs.gold.environment.copies import delete_views
from spark_jobs.gold.environment.surroundings import places_of
from spark_jobs.graph.manifest import Manifest
from spark_jobs.rollout.planning import costs, running_now
from spark_jobs.rollout.preview import changed_views
from spark_jobs.settings import Settings
from spark_jobs.state.environments import (
    Environment,
    EnvironmentStatus,
    EnvironmentView,
    ViewState,
)
from spark_jobs.state.failpoints import failpoint
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import utc_now
from spark_jobs.storage.history import remove_table
from spark_jobs.storage.lake import Lake
from spark_jobs.storage.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAILPOINTS = (
    "environment.begun",
    "environment.build.begins",
    "environment.build.written",
    "environment.build.recorded",
    "environment.drop.begun",
    "environment.drop.removed",
)


@dataclass(frozen=True, kw_only=True)
class PlannedEnvironment:
    """The plan of an environment.

    Attributes:
        environment: the record to store; its open views are to be built.
        manifest: the running manifest with its views.
        gone: views to remove; their tables are deleted.
        problems: why it would be refused.
        costs: cost of each view, by name.
        before: the current environment, or None.
    """

    environment: Environment
    manifest: Manifest
    gone: tuple[str, ...]
    problems: tuple[LakehouseError, ...]
    costs: dict[str, Cost]
    before: Environment | None

    @property
    def builds(self) -> tuple[str, ...]:
        """The views to build, in order."""
        views = self.environment.views.items()
        return tuple(view for view, one in views if one.state is ViewState.OPEN)

    @property
    def empty(self) -> bool:
        """Whether the environment is up to date."""
        return not self.builds and not self.gone

    @property
    def summary(self) -> str:
        """The plan on one line."""
        name = self.environment.name
        if not self.environment.views:
            return "No gold view differs from what runs: there is nothing to build."
        if self.empty:
            return f"Environment {name} is built; nothing is left to do."
        stand = len(self.environment.views) - len(self.builds)
        words = f"{len(self.builds)} views to build in environment {name}"
        return words + (f", {stand} up to date" if stand else "")

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object.

        Returns:
            ``environment``, ``base`` (a deployment), ``empty``, ``views``, ``gone`` and
                ``problems``. Each view has ``view``, ``why``, ``builds``, ``cost`` as text, and
                ``reads_environment``: the views of the environment that it reads.
        """
        return {
            "environment": self.environment.name,
            "base": self.environment.base,
            "empty": self.empty,
            "views": [
                {
                    "view": view,
                    "why": one.why,
                    "builds": view in self.builds,
                    "cost": self.costs[view].text if view in self.costs else "",
                    "reads_environment": sorted(
                        set(gold_inputs(self.manifest.gold[view])) & set(self.environment.views)
                    ),
                }
                for view, one in self.environment.views.items()
            ],
            "gone": list(self.gone),
            "problems": [one.as_dict() for one in self.problems],
        }


def plan_environment(
    settings: Settings, store: ControlStore, project: Manifest, name: str, *, who: str
) -> PlannedEnvironment:
    """Plan an environment: the changed views, and those left to build; writes nothing.

    Args:
        settings: project settings.
        store: the control database.
        project: the compiled project.
        name: name of the environment.
        who: the person who asks for it.

    Raises:
        EnvironmentNameError: the name is not valid.
        NothingAppliedError: nothing is running to compare with.
    """
    before = store.environment(checked_name(name))
    running = running_now(store, project)
    if running.deployment is None:
        raise NothingAppliedError
    # Views that the project no longer declares still run, and may read a changed one.
    whole = with_views(running.manifest, project, project.gold)
    chosen = changed_views(running.manifest, whole)
    manifest = with_views(running.manifest, whole, chosen)
    wanted = {
        view: EnvironmentView(
            why=why,
            base=_fingerprint(running.manifest, view),
            fingerprint=manifest.gold[view].fingerprint,
        )
        for view, why in chosen.items()
    }
    known = None if before is None else Manifest.stored(before.manifest)
    # Tables of an environment that is being dropped may be deleted already.
    stands = None if _dropping(before) else before
    views = to_build(stands, known, wanted, manifest)
    kept = {name: one for name, one in manifest.gold.items() if name not in chosen}
    others = manifest.model_copy(update={"gold": kept})
    unfinished = before is not None and before.status is EnvironmentStatus.OPEN
    environment = Environment(
        name=name,
        base=running.deployment,
        who=who,
        manifest=manifest.model_dump_json(),
        views=views,
        pins=before.pins if before is not None and unfinished else {},
        marked=tuple(sorted(marks(project))),
        created_at=utc_now() if before is None else before.created_at,
    )
    return PlannedEnvironment(
        environment=environment,
        manifest=manifest,
        gone=() if before is None else tuple(one for one in before.views if one not in views),
        problems=tuple(input_problems(running.manifest, project, manifest, chosen)),
        costs=costs(settings, store, others, manifest),
        before=before,
    )


def surroundings_of(
    settings: Settings,
    store: ControlStore,
    planned: PlannedEnvironment,
    session_factory: Callable[[Settings], SparkSession] = open_session,
) -> GoldContext:
    """The context in which the environment's views are computed; Spark starts on first use."""
    environment = planned.environment
    places = places_of(environment.name, environment.views)
    return GoldContext(settings, planned.manifest, store, session_factory, places=places)


def apply_environment(
    context: GoldContext, planned: PlannedEnvironment, *, watch: Callable[[str], Any]
) -> Environment:
    """Build the open views; the caller holds the environment's lock.

    After a kill it continues with the views that are not built, at the pinned input versions.

    Args:
        context: from ``surroundings_of``.
        planned: the plan.
        watch: shows the build of a view: a context manager.

    Raises:
        ProblemsError: the plan has problems; nothing was done.
        EnvironmentBlockedError: all views are built, and the gate blocks some.
        LakehouseError: a view cannot be computed.
    """
    if planned.problems:
        raise ProblemsError(planned.problems)
    environment, store, before = planned.environment, context.store, planned.before
    if before is not None and (gone := before.views if _dropping(before) else planned.gone):
        why = "it was deleted before this build"
        delete_views(context.settings, store, before, gone, why=why)
    store.save_environment(environment)
    failpoint("environment.begun")
    pins, clock = pinned(environment)
    for view in planned.builds:
        with watch(f"build gold.{view} in {environment.name}"):
            found = build(context, environment, view, pins=pins, clock=clock)
        environment = environment.with_view(view, found)
        environment = replace(environment, pins=pins_as_json(pins, clock))
        store.save_environment(environment)
        failpoint("environment.build.recorded")
    environment = replace(environment, status=EnvironmentStatus.BUILT, pins={})
    store.save_environment(environment)
    check_gate(environment)
    return environment


def check_gate(environment: Environment) -> None:
    """Check the gate's verdicts.

    Raises:
        EnvironmentBlockedError: the gate blocks some views.
    """
    stopped = {
        f"gold.{view}": one.problem or ""
        for view, one in environment.views.items()
        if one.state is ViewState.BLOCKED
    }
    if stopped:
        text = " ".join(f"{view}: {problem}." for view, problem in stopped.items())
        raise EnvironmentBlockedError(environment.name, list(stopped), text)


def drop_environment(settings: Settings, store: ControlStore, environment: Environment) -> None:
    """Delete an environment's tables, then its record; the caller holds its lock."""
    store.save_environment(replace(environment, status=EnvironmentStatus.DROPPING))
    failpoint("environment.drop.begun")
    remove_table(Lake(settings.lake).environment(environment.name))
    failpoint("environment.drop.removed")
    store.remove_environment(environment.name)


def _dropping(environment: Environment | None) -> bool:
    return environment is not None and environment.status is EnvironmentStatus.DROPPING


def _fingerprint(manifest: Manifest, view: str) -> str | None:
    entry = manifest.gold.get(view)
    return None if entry is None else entry.fingerprint
