"""The streams take up each deployment as a whole, or try again."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.graph.manifest import Manifest
from spark_jobs.state.deployments import Deployment, DeploymentStatus
from spark_jobs.state.errors import ControlUnreachableError
from spark_jobs.state.store import ControlStore
from spark_jobs.streaming.deployed import Deployed
from spark_jobs.streaming.supervisor import Flow


@pytest.fixture
def store(tmp_path: Path):
    with ControlStore.open(f"sqlite:///{tmp_path / 'control.db'}") as opened:
        yield opened


def put_in_force(store: ControlStore, number: int, manifest: str) -> None:
    store.begin_deployment(
        Deployment(
            deployment_id=f"d{number}",
            number=number,
            status=DeploymentStatus.APPLIED,
            in_force=True,
            who="tests",
            manifest=manifest,
        )
    )


def test_a_deployment_that_could_not_be_taken_up_is_taken_up_later(store: ControlStore) -> None:
    """Otherwise a sink that it adds delivers nothing until the streams are restarted."""
    taken: list[str] = []

    def take_up(manifest: Manifest) -> list[Flow]:
        taken.append(manifest.project)
        if taken == ["second"]:
            raise ControlUnreachableError("sqlite://", "database is locked")
        return []

    running = Deployed(store, None, Manifest(project="first"), take_up)
    assert running.newer() is None
    put_in_force(store, 2, Manifest(project="second").model_dump_json())
    with pytest.raises(ControlUnreachableError):
        running.newer()
    assert running.manifest.project == "first"
    declared = running.newer()
    assert declared is not None
    assert (declared.number, running.manifest.project) == (2, "second")
    assert running.newer() is None
    # One of another release is left alone.
    put_in_force(store, 3, '{"format": 2}')
    assert running.newer() is None
    assert taken == ["second", "second"]
