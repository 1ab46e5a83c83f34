"""The streams take up each deployment as a whole, or try again."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.graph.manifest import Manifest
from spark_jobs.state.errors import ControlUnreachableError
from spark_jobs.state.store import ControlStore
from spark_jobs.streaming.deployed import Deployed
from spark_jobs.streaming.supervisor import Flow
from tests.deployments import put_in_force


@pytest.fixture
def store(tmp_path: Path):
    with ControlStore.open(f"sqlite:///{tmp_path / 'control.db'}") as opened:
        yield opened


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
    put_in_force(store, Manifest(project="second").model_dump_json(), number=2, name="d2")
    with pytest.raises(ControlUnreachableError):
        running.newer()
    assert running.manifest.project == "first"
    declared = running.newer()
    assert declared is not None
    assert (declared.number, running.manifest.project) == (2, "second")
    assert running.newer() is None
    # One of another release is left alone.
    put_in_force(store, '{"format": 2}', number=3, name="d3")
    assert running.newer() is None
    assert taken == ["second", "second"]
