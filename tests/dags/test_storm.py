"""The simulated storm follows the code that makes the DAGs, and its page says what it shows."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from benchmarks.storm import PAGE, SCENARIOS, VARIANTS, backfill, correction, replay, simulate, tick
from benchmarks.storm_report import row
from benchmarks.storm_world import STORM, VIEWS, Calm, Costs, world
from spark_jobs.orchestration.blueprint import LONGEST_SPREAD
from spark_jobs.sections import Pools

COSTS = Costs()
# Few enough to take a second; each is a run for each view.
FEW = replace(COSTS, late_windows=10)


def test_every_view_publishes_once_a_tick_from_the_moment_that_the_tick_pinned() -> None:
    made = world(Calm(), COSTS)
    made.machine.run(until=STORM)
    for moments in made.shown.values():
        contents = [content for _, content in moments]
        assert contents == [0.0, 900.0, 1800.0, 2700.0][: len(contents)]
        assert all(0 <= now - content <= LONGEST_SPREAD + 60 for now, content in moments)


def test_staggering_spreads_what_pools_only_queue() -> None:
    spread, together = simulate(tick, Calm()), simulate(tick, Calm(stagger=False))
    assert spread.peak < together.peak == Pools().live
    assert spread.open_runs < VIEWS == together.open_runs
    assert spread.core_hours == pytest.approx(together.core_hours, rel=0.05)
    assert spread.age(0.5) > together.age(0.5), "and it costs freshness"
    assert simulate(tick, VARIANTS["none"]).peak == COSTS.parallelism


def test_a_correction_is_part_of_the_next_refresh_or_a_storm() -> None:
    calm = simulate(correction, Calm(), FEW)
    stormy = simulate(correction, Calm(coalesce=False), FEW)
    assert stormy.open_runs >= VIEWS * FEW.late_windows
    assert calm.open_runs < 5
    assert stormy.core_hours > calm.core_hours + 0.9 * VIEWS * FEW.late_windows * 6 / 3600
    assert stormy.age(0.95) > calm.age(0.95)


def test_a_replay_keeps_to_its_pool_and_a_backfill_does_not() -> None:
    apart, mixed = simulate(replay, Calm()), simulate(replay, Calm(pools=False))
    assert apart.over_after > mixed.over_after
    work = COSTS.replayed_views * COSTS.replayed_days * COSTS.replayed_day / 60
    assert apart.over_after > work, "one slot"
    assert simulate(backfill, Calm()).age(0.95) > apart.age(0.95)


@pytest.mark.parametrize("scenario", ["a tick at which all views are due"])
def test_the_page_is_what_the_code_gives(scenario: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    for variant, calm in VARIANTS.items():
        assert row(variant, simulate(SCENARIOS[scenario], calm)) in page
    for name, value in vars(COSTS).items():
        assert re.search(rf"\| {name.replace('_', ' ')} \| {value:,} \|", page)
