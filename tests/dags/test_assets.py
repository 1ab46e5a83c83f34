"""Another team's DAG, as the page on Airflow shows it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag

from spark_jobs.settings import REPOSITORY

pytestmark = [pytest.mark.usefixtures("airflow_database"), pytest.mark.filterwarnings("default")]

EXAMPLE = re.compile(r"```python file=(\S+)\n(.*?)```", re.DOTALL)


def test_the_dag_of_another_team_waits_for_a_table_that_there_is(tmp_path: Path) -> None:
    ((name, code),) = EXAMPLE.findall((REPOSITORY / "docs/airflow.md").read_text())
    (tmp_path / name).write_text(code)
    bag = DagBag(dag_folder=str(tmp_path / name))
    assert bag.import_errors == {}
    (dag,) = bag.dags.values()
    layer, view = dag.timetable.asset_condition.name.split(".")
    assert (REPOSITORY / "sql" / layer / f"{view}.sql").exists()
