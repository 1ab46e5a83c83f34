"""What holds for every DAG, whatever a project declares."""

from __future__ import annotations

from datetime import timedelta

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG, CronDataIntervalTimetable

from spark_jobs.orchestration.airflow import gold_dags
from spark_jobs.orchestration.blueprint import Pool
from spark_jobs.sections import Pools

pytestmark = [pytest.mark.usefixtures("airflow_database"), pytest.mark.filterwarnings("default")]

POOLS = set(Pools.model_fields)


def test_the_stack_makes_each_pool() -> None:
    assert {str(one) for one in Pool} == POOLS


@pytest.fixture
def dags(project, dag_file) -> list[DAG]:
    bag = DagBag(dag_folder=str(dag_file), known_pools=POOLS)
    assert bag.import_errors == {}
    assert bag.dags
    return list(bag.dags.values())


def test_ids_owner_tags_and_documentation(dags: list[DAG]) -> None:
    for dag in dags:
        layer, _, view = dag.dag_id.partition("__")
        assert layer == "gold"
        assert view
        assert dag.owner == "analytics"
        assert {"gold", "tier:0", "refresh:micro-batch", "owner:analytics", "shop"} == set(dag.tags)
        assert dag.description
        for heading in ("## gold.", "### Columns", "### Lineage", "### SQL", "Freshness target"):
            assert heading in dag.doc_md


def test_a_run_can_be_triggered_from_the_form_as_it_opens(dags: list[DAG]) -> None:
    for dag in dags:
        for name in dag.params:
            field = dag.params.get_param(name)
            # Airflow's form refuses what is empty, unless NULL is among its types.
            assert field.value not in (None, "") or "null" in field.schema["type"], name


def test_one_run_at_a_time_on_aligned_intervals_without_catching_up(dags: list[DAG]) -> None:
    for dag in dags:
        assert dag.max_active_runs == 1
        assert not dag.catchup
        assert dag.is_paused_upon_creation is False
        assert isinstance(dag.timetable, CronDataIntervalTimetable)
        assert dag.start_date.tzinfo is not None


@pytest.mark.parametrize(
    ("first", "paused"), [((), False), (("order_totals",), False), (("another",), True)]
)
def test_views_that_are_not_scheduled_at_first_are_made_paused(project, first, paused) -> None:
    project.compile()
    gold = project.settings.gold.model_copy(update={"scheduled_at_first": first})
    settings = project.settings.model_copy(update={"gold": gold})
    [dag] = gold_dags(settings).values()
    assert dag.is_paused_upon_creation is paused


def test_every_task_has_retries_a_policy_a_limit_and_a_pool_that_exists(dags: list[DAG]) -> None:
    for task in (task for dag in dags for task in dag.tasks):
        assert task.retries == 2
        assert task.has_retry_policy
        assert [type(one).__name__ for one in task.on_failure_callback] == ["AlertNotifier"]
        assert timedelta() < task.execution_timeout <= timedelta(hours=4)
        assert task.pool in POOLS
        assert task.trigger_rule == "all_success"


def test_the_task_that_writes_is_one_across_all_runs_and_is_the_only_one_that_announces(
    dags: list[DAG],
) -> None:
    for dag in dags:
        assert [task.task_id for task in dag.tasks] == ["plan", "stage", "audit", "publish"]
        announcing = [task for task in dag.tasks if task.outlets]
        assert [task.task_id for task in announcing] == ["publish"]
        assert announcing[0].max_active_tis_per_dag == 1
        assert announcing[0].outlets[0].uri == "x-tidemark://gold/order_totals"
        inlets = [one.name for one in announcing[0].inlets]
        assert inlets == ["bronze.orders", "gold.order_totals.quality"]
