"""A gold view over a seed: a changed file is followed by its rows, and equals a recomputation."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from spark_jobs.bronze.seed_table import load_seed
from spark_jobs.definitions.vocabulary import SourceFormat
from spark_jobs.graph.manifest import Column, SourceEntry
from spark_jobs.settings import load_settings
from spark_jobs.state.store import ControlStore
from tests.spark.gold_project import GoldProject
from tests.spark.templates import Templates

RATES = SourceEntry(
    name="rates",
    format=SourceFormat.CSV,
    path="seeds/rates.csv",
    keys=("country",),
    columns=(
        Column(name="country", type="string"),
        Column(name="rate", type="decimal(6,4)"),
        Column(name="since", type="timestamp"),
    ),
    file="sources/rates.yml",
)
HEAD = "country,rate,since\n"
FIRST = "de,0.19,2024-01-01T00:00:00Z\nfr,0.2,\n"
SECOND = "de,0.16,2024-01-01T00:00:00Z\nit,0.22,\n"
JOINED = """\
SELECT r.country, r.rate, r.since, s.amount
FROM silver.sales AS s JOIN bronze.rates AS r ON r.country = s.country
"""


def test_a_view_follows_a_changed_seed(
    spark: SparkSession, tmp_path: Path, templates: Templates
) -> None:
    settings = load_settings(tmp_path, state_dir=tmp_path / "state", spark={"master": "local[2]"})
    file = tmp_path / "seeds" / "rates.csv"
    file.parent.mkdir()
    with ControlStore.open(settings.control_url) as store:
        project = GoldProject(spark, settings, store, templates=templates)
        sales = "SELECT * FROM VALUES ('de', 10), ('fr', 20), ('it', 30) AS v(country, amount)"
        project.append("silver.sales", sales)
        file.write_text(HEAD + FIRST)
        load_seed(settings, RATES)
        project.view("taxed", JOINED, inputs=("silver.sales", "bronze.rates"), maintained=True)
        project.refresh("taxed", "t1")
        project.assert_right("taxed")

        file.write_text(HEAD + SECOND)
        loaded = load_seed(settings, RATES)
        assert (loaded.inserted, loaded.updated, loaded.deleted) == (1, 1, 1)
        outcome = project.refresh("taxed", "t2")
        assert outcome.plan.reason.code == "INPUT_CHANGED_RULE"
        project.assert_right("taxed")
