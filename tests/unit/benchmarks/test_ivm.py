"""The page of the benchmark of incremental maintenance."""

from __future__ import annotations

import typer
from typer.testing import CliRunner

from benchmarks.ivm import Engines, main
from benchmarks.measure import Cost
from benchmarks.records import FULL, IDLE, OURS, Record, Run, ScaleFacts, run_facts
from benchmarks.report import markdown
from spark_jobs.sections import Engine, SparkSettings


def record(contender: str, cpu: float, *, engine: str = "", chosen: str = "") -> Record:
    cost = Cost(cpu=cpu, wall=cpu, read=0, written=0, peak=0, others=0)
    return Record("q05", 0.001, contender, chosen, cost, engine)


def test_each_engine_is_compared_with_spark_and_never_with_another() -> None:
    facts = ScaleFacts(
        **vars(run_facts(seed=1, spark=SparkSettings()).finished()), scale=1, repetitions=1
    )
    records = [record(FULL, 4), record("duckdb-full", 1)]
    for engine, cpu in ((Engine.AUTO, 0.5), (Engine.SPARK, 2)):
        records.append(record(OURS, cpu, engine=engine, chosen=f"full, {engine}"))
        records.append(record(IDLE, 0.01, engine=engine))
    page = markdown(Run(facts, records))
    auto, spark = page.split("## `gold.engine: ")[1:]
    for part, ratio, did in ((auto, "8.00x", "full, auto"), (spark, "2.00x", "full, spark")):
        [line] = [one for one in part.splitlines() if one.startswith("| q05")]
        assert f"| {ratio} |" in line
        assert f"| {did} |" in line
        assert f"| 0.1 %, 1,500 orders | {ratio} |" in part
    assert "-XX:ReservedCodeCacheSize" in page
    assert max(len(one) for one in page.splitlines() if not one.startswith("|")) < 90


def test_an_engine_is_measured_alone_or_beside_the_other() -> None:
    assert [one.each for one in Engines] == [
        [Engine.SPARK],
        [Engine.AUTO],
        [Engine.SPARK, Engine.AUTO],
    ]


def test_no_contender_merges_in_a_measured_round_what_another_did_before() -> None:
    """After the rounds of ours alone, a round of all comes before those that count."""
    app = typer.Typer()
    app.command()(main)
    asked = CliRunner().invoke(app, ["--warm-up", "0", "--query", "none"])
    assert asked.exit_code == 2
    assert "warm-up" in asked.output
