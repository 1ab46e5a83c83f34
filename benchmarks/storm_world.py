"""Fifty views over one table and their scheduled runs, in a simulated machine.

Start times, tasks, pools and mutual exclusion come from the code that builds the DAGs. The costs of
tasks are assumptions; see ``Costs``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial

from benchmarks.simulation import Machine, Run, Task
from spark_jobs.definitions.vocabulary import RefreshPolicy
from spark_jobs.graph.manifest import Column, GoldEntry, Manifest
from spark_jobs.orchestration.blueprint import DagBlueprint, Pool, Step, blueprints
from spark_jobs.sections import Pools

VIEWS = 50
PERIOD = 15 * 60
# In the first hour every view publishes; then the storm starts, and six hours are observed.
STORM, END = 3600.0, 7 * 3600.0
MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)
SAMPLE_SECONDS = 10


@dataclass(frozen=True)
class Costs:
    """Assumed costs; in core-seconds unless stated otherwise."""

    cores: int = 4
    # Airflow's default; a project adds the pools.
    parallelism: int = 32
    hand_over_seconds: float = 1.0
    plan: float = 0.5
    stage: float = 3.0
    stage_per_thousand_rows: float = 0.2
    stage_per_window: float = 0.01
    audit: float = 1.0
    publish: float = 1.5
    rows_per_second: float = 10.0
    windows_per_tick: int = 2
    late_rows: int = 10_000
    late_windows: int = 500
    replayed_views: int = 5
    replayed_days: int = 90
    replayed_day: float = 30.0


@dataclass(frozen=True)
class Calm:
    """Countermeasures.

    Attributes:
        stagger: starts are spread within the period.
        pools: each has its slots; without them only Airflow's parallelism limits tasks.
        coalesce: one run processes all pending requests; otherwise each request is a run.
    """

    stagger: bool = True
    pools: bool = True
    coalesce: bool = True


@dataclass(frozen=True)
class Result:
    """The result of a simulation.

    Attributes:
        peak: maximum number of concurrent tasks.
        open_runs: maximum number of runs that were submitted and had not ended.
        core_hours: total work.
        over_after: minutes until the storm's work was done and visible in every view.
        ages: of each view's content, every ten seconds of the six hours after the storm, sorted.
    """

    peak: int
    open_runs: int
    core_hours: float
    over_after: float
    ages: Sequence[float]

    def age(self, share: float) -> float:
        """A percentile of the ages, in minutes."""
        return self.ages[min(len(self.ages) - 1, int(share * len(self.ages)))] / 60


@dataclass
class World:
    """The views, their content and the base table.

    Attributes:
        shown: for each view when it published, and from which moment its content is.
        pinned: the moment at which the first view of a tick pinned the table's version.
        missed: for each view the newest tick during which a run was still open.
        over_at: the end of the last run that the storm requested.
        late_at: when a late correction arrived; runs that pin later include it.
    """

    calm: Calm
    costs: Costs
    machine: Machine
    dags: dict[str, DagBlueprint]
    shown: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    pinned: dict[float, float] = field(default_factory=dict)
    missed: dict[str, float] = field(default_factory=dict)
    late_at: float | None = None
    over_at: float = STORM

    def tick(self, view: str, end: float) -> None:
        """A scheduled run is due; runs are sequential, and of missed ones only the last follows."""
        if self.calm.coalesce and self.machine.pending(view):
            self.missed[view] = end
            return
        self.machine.submit(
            Run(view, lambda now: self._refresh(view, end, now), self._ended(view, end))
        )

    def request(self, view: str) -> None:
        """A request for one window of one view."""
        costs = self.costs
        work = costs.late_rows / costs.late_windows, 1
        self.submit_extra(Run(view, lambda _: self.tasks(view, *work)))

    def submit_extra(self, run: Run) -> None:
        """Submit an unscheduled run."""
        run.on_end = self._over
        self.machine.submit(run)

    def _over(self, now: float) -> None:
        self.over_at = now

    def _refresh(self, view: str, end: float, now: float) -> list[Task]:
        upto = self.pinned.setdefault(end, now)
        since = self.shown[view][-1][1] if self.calm.coalesce else end - PERIOD
        rows = max(upto - since, 0) * self.costs.rows_per_second
        windows = self.costs.windows_per_tick
        if self.late_at is not None and self.calm.coalesce and since < self.late_at <= upto:
            rows, windows = rows + self.costs.late_rows, windows + self.costs.late_windows
        return self.tasks(view, rows, windows)

    def tasks(self, view: str, rows: float, windows: int) -> list[Task]:
        """The tasks of one refresh, for a number of rows in a number of windows."""
        costs = self.costs
        work = {
            Step.PLAN: costs.plan,
            Step.STAGE: costs.stage
            + costs.stage_per_thousand_rows * rows / 1000
            + costs.stage_per_window * windows,
            Step.AUDIT: costs.audit,
            Step.PUBLISH: costs.publish,
        }
        return [
            Task(self.pool(one.pool), work[one.step], view if one.writes else None)
            for one in self.dags[view].tasks
        ]

    def pool(self, kind: Pool) -> str:
        """The pool's name; without pools all share one."""
        return str(kind) if self.calm.pools else "all"

    def _ended(self, view: str, end: float) -> Callable[[float], None]:
        def ended(now: float) -> None:
            self.shown[view].append((now, max(self.pinned[end], self.shown[view][-1][1])))
            if (missed := self.missed.pop(view, None)) is not None:
                # Only after this run has left its queue.
                self.machine.at(now, partial(self.tick, view, missed))

        return ended

    def ages(self) -> list[float]:
        """The ages of each view's content during the observation, sorted."""
        found = []
        for moments in self.shown.values():
            place = 0
            for now in range(int(STORM), int(END), SAMPLE_SECONDS):
                while place + 1 < len(moments) and moments[place + 1][0] <= now:
                    place += 1
                found.append(now - moments[place][1])
        return sorted(found)


def manifest() -> Manifest:
    """Fifty views over one table, each due every quarter of an hour."""
    entry = GoldEntry(
        name="view",
        description="A view.",
        owner="storm",
        refresh=RefreshPolicy.MICRO_BATCH,
        every_seconds=PERIOD,
        grain=("day",),
        sql="",
        query="",
        inputs=("silver.orders",),
        columns=(Column(name="day", type="date"),),
        fingerprint="",
        deterministic=True,
        reads_clock=False,
        file="sql/gold/view.sql",
        tier=0,
    )
    names = [f"view_{number:02}" for number in range(VIEWS)]
    return Manifest(
        project="storm", gold={name: entry.model_copy(update={"name": name}) for name in names}
    )


def world(calm: Calm, costs: Costs) -> World:
    """The views with their scheduled runs, without a storm."""
    pools = Pools().model_dump()
    slots = pools if calm.pools else {"all": costs.parallelism}
    machine = Machine(costs.cores, slots, costs.parallelism, costs.hand_over_seconds)
    dags = {one.view: one for one in blueprints(manifest(), own_timetable=calm.stagger)}
    made = World(calm, costs, machine, dags, shown={view: [(0.0, 0.0)] for view in dags})
    for view, dag in dags.items():
        for starts, ends in scheduled(dag.cron or "", dag.delay_seconds):
            machine.at(starts, partial(made.tick, view, ends))
    return made


@lru_cache
def scheduled(cron: str, delay_seconds: int) -> tuple[tuple[float, float], ...]:
    """When Airflow starts runs, and the ends of their intervals; seconds from midnight."""
    # Importing Airflow creates its home directory, so it must come after `main` has set it.
    import pendulum  # noqa: PLC0415
    from airflow.timetables.base import DataInterval, TimeRestriction  # noqa: PLC0415

    from spark_jobs.orchestration.staggered import StaggeredTimetable  # noqa: PLC0415

    timetable = StaggeredTimetable(cron, delay=timedelta(seconds=delay_seconds))
    begin = pendulum.instance(MIDNIGHT)
    restriction = TimeRestriction(earliest=begin, latest=None, catchup=True)
    last: DataInterval | None = None
    found: list[tuple[float, float]] = []
    while not found or found[-1][0] < END:
        info = timetable.next_dagrun_info(
            last_automated_data_interval=last, restriction=restriction
        )
        if info is None or info.data_interval is None:
            break
        last = info.data_interval
        starts, ends = info.run_after - begin, last.end - begin
        found.append((starts.total_seconds(), ends.total_seconds()))
    return tuple(one for one in found if one[0] < END)
