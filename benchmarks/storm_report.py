"""The page of the simulated storm: tables, conclusions, and assumptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from textwrap import fill

from benchmarks.storm_world import Costs, Result
from spark_jobs.sections import Pools

Results = Mapping[str, Mapping[str, Result]]

HEAD = """\
# A storm, simulated

Written by `make bench-storm`. 50 views on one base table, each due every 15 minutes. An
hour after the start it happens, and the six hours after that are watched.

When runs start, which tasks they have, which pool each waits in and which exclude each
other comes from the code that makes the DAGs: `orchestration/blueprint.py`, the
staggered timetable, the pools of `airflow.pools`. Nothing here is measured: what a task
costs is assumed, as listed at the end, and tasks share the cores evenly.

- *tasks at once*: the most that ran at the same time; each holds memory
- *open runs*: the most that were asked for and had not ended
- *work*: core-hours until everything is done
- *over after*: minutes until the storm's own work is done and every view shows it
- *age*: minutes; how old a live view's content is, of all views every 10 seconds

Without pools, all tasks share Airflow's parallelism. Without coalescing, each request is
a run of its own: a correction then asks for every window of every view.
"""
COLUMNS = ("", "tasks at once", "open runs", "work", "over after", "age, median", "age, p95")


def page(results: Results, costs: Costs) -> str:
    """The results as tables, with conclusions and assumptions."""
    lines = [HEAD, "## What it shows", "", *_shown(results), ""]
    for name, variants in results.items():
        lines += [f"## {name[0].upper()}{name[1:]}", "", _row(COLUMNS), "|---" * 7 + "|"]
        lines += [row(variant, found) for variant, found in variants.items()]
        lines.append("")
    defaults = ", ".join(f"{name} {slots}" for name, slots in Pools().model_dump().items())
    lines += ["## Assumed", "", f"Slots of the pools, by their default: {defaults}.", ""]
    lines += ["| core-seconds, where nothing else is said | |", "|---|---|"]
    lines += [
        _row((one.name.replace("_", " "), f"{getattr(costs, one.name):,}")) for one in fields(costs)
    ]
    return "\n".join(lines) + "\n"


def row(variant: str, found: Result) -> str:
    """One line of a scenario's table."""
    numbers = (f"{found.peak}", f"{found.open_runs:,}", f"{found.core_hours:.1f}")
    times = (f"{found.over_after:,.0f}", f"{found.age(0.5):.1f}", f"{found.age(0.95):.1f}")
    return _row((variant, *numbers, *times))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _shown(results: Results) -> list[str]:
    due, late, replayed, backfilled = results.values()
    calm, together, bare = due["all three"], due["no staggering"], due["none"]
    coalesced, each = late["all three"], late["no coalescing"]
    apart, mixed = replayed["all three"], replayed["no pools"]
    sentences: list[str] = []
    sentences.append(
        "Coalescing is what keeps a correction from being a storm: "
        f"{coalesced.core_hours:.1f} core-hours, not {each.core_hours:.1f}, and every view shows "
        f"it after {coalesced.over_after:.0f} minutes, not {each.over_after:,.0f}."
    )
    sentences.append(
        f"Staggering leaves {calm.open_runs} runs open at once, not {together.open_runs}. It "
        f"costs age: a median of {calm.age(0.5):.1f} minutes, not {together.age(0.5):.1f}. Where "
        "that is too old, give the view a shorter period, or set `airflow.stagger: false`."
    )
    sentences.append(
        f"Pools hold the number of tasks, and with it the memory: {together.peak} at once, not "
        f"{bare.peak}. As cores are shared evenly here, they make nothing fresher by themselves. "
        f"A replay that keeps to its one slot takes {apart.over_after:.0f} minutes, not "
        f"{mixed.over_after:.0f}."
    )
    sentences.append(
        "Backfills are runs of the view's own DAG and wait in the pool of live refreshes: live "
        f"views have a p95 of {backfilled['all three'].age(0.95):.1f} minutes meanwhile, and "
        f"{apart.age(0.95):.1f} beside a replay of the same days. For long ranges, replay."
    )
    return [fill(one, 88, initial_indent="- ", subsequent_indent="  ") for one in sentences]
