"""Assets as other teams see them: their DAGs, as the page on Airflow shows them, and the graph."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.api_fastapi.core_api.services.ui.dependencies import get_data_dependencies
from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
from airflow.models.asset import AssetActive, AssetModel
from airflow.sdk import DAG
from airflow.utils.session import create_session
from sqlalchemy import select

from spark_jobs.gold.telemetry.verdict_events import quality_asset_name, verdict_event
from spark_jobs.orchestration.blueprint import quality_asset
from spark_jobs.quality.verdict import Verdict
from spark_jobs.settings import REPOSITORY
from spark_jobs.state.attempts import RefreshAttempt
from spark_jobs.state.types import utc_now

pytestmark = [pytest.mark.usefixtures("airflow_database"), pytest.mark.filterwarnings("default")]

EXAMPLE = re.compile(r"```python file=(\S+)\n(.*?)```", re.DOTALL)


@pytest.fixture
def examples(tmp_path: Path) -> dict[str, DAG]:
    """The DAGs of the page, by their ids."""
    folder = tmp_path / "other-team"
    folder.mkdir()
    for name, code in EXAMPLE.findall((REPOSITORY / "docs/airflow.md").read_text()):
        (folder / name).write_text(code)
    bag = DagBag(dag_folder=str(folder))
    assert bag.import_errors == {}
    return bag.dags


def test_dags_of_another_team_wait_for_tables_that_there_are(examples: dict[str, DAG]) -> None:
    assert set(examples) == {"report__orders", "quality__orders"}
    for dag in examples.values():
        layer, view, *quality = dag.timetable.asset_condition.name.split(".")
        assert (REPOSITORY / "sql" / layer / f"{view}.sql").exists()
        assert quality in ([], ["quality"])


def test_a_dag_of_another_team_reads_what_a_verdict_s_event_says(
    examples: dict[str, DAG], capsys: pytest.CaptureFixture[str]
) -> None:
    now = utc_now()
    attempt = RefreshAttempt(
        attempt_id="a1",
        view="orders_by_status",
        tick="t1",
        epoch=1,
        started_at=now,
        updated_at=now,
        verdict=Verdict(table="gold.orders_by_status", suite=None, rows=1).as_dict(),
    )
    event = SimpleNamespace(extra=verdict_event(attempt))
    tell = examples["quality__orders"].get_task("tell")
    tell.python_callable(triggering_asset_events={"gold.orders_by_status.quality": [event]})
    assert capsys.readouterr().out == "passed []\n"


def test_the_graph_leads_from_view_to_view_and_airflow_knows_each_asset(project, dag_file) -> None:
    manifest = project.compile(downstream=("vips",))
    totals = manifest.gold["order_totals"]
    reads = {"name": "vips", "inputs": ("gold.order_totals",), "downstream": (), "tier": 1}
    vips = totals.model_copy(update=reads)
    both = manifest.model_copy(update={"gold": {"order_totals": totals, "vips": vips}})
    both.write(project.settings.manifest_file)
    DagBundlesManager().sync_bundles_to_db()
    sync_bag_to_db(DagBag(dag_folder=str(dag_file)), "dags-folder", None)

    with create_session() as session:
        (source,) = session.scalars(select(AssetModel).where(AssetModel.name == "bronze.orders"))
        graph = get_data_dependencies(source.id, session)
        active = set(session.scalars(select(AssetActive.name)))
    labels = {node["id"]: node["label"] for node in graph["nodes"]}
    edges = {(labels[one["source_id"]], labels[one["target_id"]]) for one in graph["edges"]}
    path = (
        "bronze.orders",
        "gold__order_totals.publish",
        "gold.order_totals",
        "gold__vips.publish",
        "gold.vips",
    )
    assert set(pairwise(path)) <= edges
    quality = quality_asset(totals.table_name).name
    assert quality == quality_asset_name("order_totals")
    assert quality in active
