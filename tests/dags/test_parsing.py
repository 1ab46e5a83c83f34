"""Parsing the DAG file: what it imports, how it fails, and that it is the same every time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from spark_jobs.orchestration import operations
from spark_jobs.orchestration.airflow import gold_dags
from spark_jobs.orchestration.compiled import compiled_manifest
from spark_jobs.orchestration.errors import ManifestMissingError, ManifestUnreadableError

# Each costs a parse a second or more, or starts something.
BLOCKED = ("pyspark", "great_expectations", "sqlglot", "deltalake", "pandas", "delta", "pyarrow")
PARSE = f"""
import json, runpy, sys, time

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {BLOCKED!r}:
            raise ImportError(f"DAG parsing imports {{name}}")

sys.meta_path.insert(0, Blocker())
import airflow.sdk
from airflow.sdk import DAG
from airflow.serialization.serialized_objects import DagSerialization

def parse():
    started = time.perf_counter()
    found = runpy.run_path(sys.argv[1])
    seconds = time.perf_counter() - started
    dags = [one for one in found.values() if isinstance(one, DAG)]
    return seconds, [DagSerialization.to_dict(one) for one in dags]

first, second = parse(), parse()
print(json.dumps({{"count": len(first[1]), "same": first[1] == second[1], "seconds": second[0]}}))
"""


def parse(dag_file: Path) -> dict:
    done = subprocess.run(
        [sys.executable, "-c", PARSE, str(dag_file)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env=os.environ,
    )
    return json.loads(done.stdout.splitlines()[-1])


def test_two_hundred_views_parse_alike_twice_without_heavy_imports(
    project, dag_file, record_property
) -> None:
    manifest = project.compile()
    entry = manifest.gold["order_totals"]
    views = {f"v{n}": entry.model_copy(update={"name": f"v{n}"}) for n in range(200)}
    manifest.model_copy(update={"gold": views}).write(project.settings.manifest_file)
    found = parse(dag_file)
    record_property("parse_seconds", found["seconds"])
    assert found["count"] == 200
    assert found["same"]


def test_a_project_that_was_not_compiled_is_one_clear_error(project) -> None:
    project.settings.manifest_file.unlink()
    with pytest.raises(ManifestMissingError) as caught:
        gold_dags()
    assert caught.value.path == project.settings.manifest_file
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 2, "project": "p"}', '{"new": 1}'])
def test_a_manifest_of_another_form_is_one_clear_error(project, text: str) -> None:
    project.settings.manifest_file.write_text(text)
    with pytest.raises(ManifestUnreadableError):
        compiled_manifest(project.settings)


def test_a_process_that_runs_one_task_builds_one_dag(project, monkeypatch) -> None:
    manifest = project.compile()
    entry = manifest.gold["order_totals"]
    views = {name: entry.model_copy(update={"name": name}) for name in ("a", "b")}
    manifest.model_copy(update={"gold": views}).write(project.settings.manifest_file)
    assert sorted(gold_dags()) == ["gold__a", "gold__b"]
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "gold__b")
    assert sorted(gold_dags()) == ["gold__b"]


def test_the_forms_read_the_manifest_once(project, monkeypatch) -> None:
    read = []

    def counted(settings):
        read.append(settings)
        return compiled_manifest(settings)

    monkeypatch.setattr(operations, "compiled_manifest", counted)
    assert sorted(operations.operations_dags()) == ["ops__release", "ops__replay", "ops__rollback"]
    assert len(read) == 1
