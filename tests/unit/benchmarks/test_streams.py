"""The parts of the streams' benchmark that need no stack: delays, percentiles, the report."""

from __future__ import annotations

import doctest
import json
import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from benchmarks.measure import Cost
from benchmarks.records import run_facts
from benchmarks.streams import arrivals, load, report, results, steady, steady_report, upserts
from benchmarks.streams.project import GOLD, SILVER, write_chain, write_rows
from benchmarks.streams.results import (
    Chain,
    Ingest,
    Memory,
    Moment,
    Pace,
    Peer,
    Results,
    Spread,
    Steady,
    Upserts,
)
from spark_jobs.definitions.vocabulary import RefreshPolicy
from spark_jobs.graph.compile import compile_project
from spark_jobs.graph.manifest import ApplyMode, MaintenanceStrategy
from spark_jobs.names import TableVersion
from spark_jobs.planning.vector import VersionVector
from spark_jobs.planning.watermark import Watermark
from spark_jobs.sections import SparkSettings

SENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
COST = Cost(cpu=30.0, wall=60.0, read=2**20, written=2**21, peak=2**30, others=0.5)
PACE = Pace(bronze=5, silver=5, gold=5)


@pytest.mark.parametrize(
    "module", [arrivals, load, results, steady, upserts], ids=lambda one: one.__name__
)
def test_examples(module: ModuleType) -> None:
    found = doctest.testmod(module)
    assert found.attempted
    assert not found.failed


def rows(*seconds: float) -> pa.Table:
    """Rows that were sent so many seconds after ``SENT``."""
    times = [SENT + timedelta(seconds=one) for one in seconds]
    return pa.table({"event_time": pa.array(times, pa.timestamp("us", "UTC"))})


def committed(location: str, version: int, seconds: float) -> None:
    """Have a commit's file appear so many seconds after ``SENT``."""
    at = SENT.timestamp() + seconds
    os.utime(Path(location, "_delta_log", f"{version:020}.json"), (at, at))


def test_a_row_arrives_with_the_commit_that_brought_it(tmp_path: Path) -> None:
    location = str(tmp_path / "events")
    for version, sent in enumerate([(0.0, 1.0), (2.0,)]):
        write_deltalake(location, rows(*sent), mode="append")
        committed(location, version, 3.0 + version)
    DeltaTable(location).optimize.compact()
    found = arrivals.arrivals(location, "event_time")
    assert [one.version for one in found] == [0, 1]
    assert arrivals.delays(found).tolist() == pytest.approx([3.0, 2.0, 2.0])


def test_a_view_shows_what_its_publications_say(tmp_path: Path) -> None:
    location = str(tmp_path / "counts")
    for version, shown in enumerate([2, 5]):
        mark = Watermark(
            view=GOLD.name,
            sequence=version + 1,
            epoch=1,
            fingerprint="1",
            rule="full",
            vector=VersionVector({SILVER: TableVersion("id", shown)}),
            tick="continuous",
            attempt="1",
            clock=SENT,
        )
        told = {"userMetadata": json.dumps(mark.as_metadata())}
        properties = CommitProperties(custom_metadata=told)
        write_deltalake(location, rows(0.0), mode="append", commit_properties=properties)
        committed(location, version, 10.0 * (version + 1))
    shown = arrivals.publications(location, SILVER)
    began = SENT.timestamp()
    assert [(version, at - began) for version, at in shown] == [(2, 10.0), (5, 20.0)]


def test_events_have_their_size_and_are_json() -> None:
    for number in (0, 7, 10**9):
        text = load.event(number, "2026-01-02T03:04:05.678Z")
        assert len(text) == load.EVENT_BYTES
        assert json.loads(text)["user_id"] == number % 10_007


def test_changes_have_each_key_once_and_new_keys_in_every_round() -> None:
    rounds = [upserts.changes_of(number, rows=100, changes=20, seed=1) for number in (1, 2)]
    for changed in rounds:
        assert len({key for key, *_ in changed}) == len(changed) == 20
    new = [{key for key, *_ in changed if key >= 100} for changed in rounds]
    assert [len(keys) for keys in new] == [2, 2]
    assert not new[0] & new[1]


def test_the_projects_are_what_the_sections_measure(tmp_path: Path) -> None:
    write_chain(tmp_path / "chain")
    view = compile_project(tmp_path / "chain").gold[GOLD.name]
    assert view.refresh is RefreshPolicy.CONTINUOUS
    assert view.maintenance is not None
    assert view.maintenance.rule is not MaintenanceStrategy.FULL
    write_rows(tmp_path / "rows")
    assert compile_project(tmp_path / "rows").silver["accounts"].apply is ApplyMode.UPSERT


@pytest.fixture
def measured() -> Results:
    """Results of every section."""
    facts = run_facts(seed=1, spark=SparkSettings()).finished()
    spread = Spread.of(np.array([1.0, 2.0, 4.0, 20.0]))
    chain = Chain(
        pace=PACE,
        wanted=10_000,
        rate=9_000,
        events=100,
        bronze=Spread(p50=1.4, p95=9.0, most=9.0, count=4),
        silver=spread,
        gold=spread,
        idle=COST,
        cost=COST,
        memory=Memory(peak=2**30, growth_per_minute=2**20),
        files={"bronze.events": 7, "silver.events": 3},
        commits={"bronze.events": 20},
    )
    found = {
        "ingest": [Ingest(pace=PACE, events=100, event_bytes=200, seconds=2.0, cost=COST)],
        "latency": [chain],
        "upserts": Upserts(
            rows=100,
            changes=10,
            table_bytes=2**20,
            costs={upserts.OURS: [COST], upserts.COPIES: [COST]},
        ),
        "peer": Peer(events=6_000, pace=PACE, ours=COST, missing="no such package"),
    }
    return Results.model_validate(
        {name: {"facts": facts, "found": one} for name, one in found.items()}
    )


def test_the_report_lists_reached_aims_and_unmeasured_systems(measured: Results) -> None:
    page = report.markdown(measured, picture="streams.svg")
    assert "| 5 / 5 / 5 s, auto | 100 | 50 | 0% |" in page
    # Of bronze the median counts, of the others the 95th percentile; 17.6 s reach neither aim.
    assert "| 9,000 | 10,000 | **1.4** | 9.0 | 3.0 | 17.6 | 3.0 | 17.6 |" in page
    assert "Flink was not measured: no such package" in page
    assert all(len(line) < 90 for line in page.splitlines() if not line.startswith("|"))
    assert "| 30.00 | 60 | 1.00 | +1.0 | bronze 20 | bronze 7, silver 3 |" in page
    assert f"| {upserts.COPIES} | 60.0 | 30.0 |" in page


def test_a_new_run_of_one_section_keeps_the_others(measured: Results, tmp_path: Path) -> None:
    folders = {"data": tmp_path / "data", "papers": tmp_path / "papers"}
    written = report.write_report(measured, **folders)
    assert {file.suffix for file in written} == {".json", ".md", ".svg"}
    assert Results.read(folders["data"] / "streams.json") == measured
    assert Results.read(tmp_path / "none.json") == Results()


def test_the_plot_has_a_bar_for_each_layer_within_its_frame(measured: Results) -> None:
    picture = report.plot(measured.latency.found)
    width = float(re.search(r'width="(\d+)"', picture)[1])
    ends = [float(end) for end in re.findall(r"H([\d.]+)", picture)]
    assert len(ends) == len(report.AIMS)
    assert max(ends) <= width


def steady_run(minutes: int) -> Steady:
    """A moment a minute; the resident memory grows by a MiB from each to the next."""
    moments = [
        Moment(
            seconds=60.0 * at,
            resident=(1000 + at) * 2**20,
            heap=None if at == 0 else 2**20 * (100 + at % 3),
            old=90 * 2**20,
            files=7,
        )
        for at in range(minutes + 1)
    ]
    return Steady(pace=PACE, rate=200, events=12_000, cost=COST, moments=moments)


def test_memory_is_shown_from_the_first_minute_to_the_last() -> None:
    lines = list(steady_report.page(steady_run(30), picture="x.svg"))
    assert "grows by +60 MiB an hour" in " ".join(lines)
    rows = [line for line in lines if re.match(r"\| \d", line)]
    assert len(rows) == 13
    assert rows[0] == "| 0.0 | 1,000 |  | 90 | 7 |"
    assert rows[-1] == "| 30.0 | 1,030 | 100 | 90 | 7 |"
    assert [line for line in lines if len(line) >= 90 and not line.startswith("|")] == []


@pytest.mark.parametrize("minutes", [0, 1, 30])
def test_every_line_of_memory_is_within_the_plots_frame(minutes: int) -> None:
    picture = steady_report.plot(steady_run(minutes))
    frame = [float(one) for one in re.search(r'width="(\d+)" height="(\d+)"', picture).groups()]
    lines = re.findall(r'd="M([\d. L]+)" stroke="#[0-9a-f]+" stroke-width', picture)
    # Of the first moment the heap is not known.
    assert len(lines) == (3 if minutes else 2)
    for line in lines:
        for place in line.split("L"):
            x, y = map(float, place.split())
            assert 0 <= x <= frame[0]
            assert 0 <= y <= frame[1]
