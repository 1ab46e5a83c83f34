"""Deployments in a control database, as an apply records them."""

from __future__ import annotations

from collections.abc import Mapping

from spark_jobs.state.deployments import Deployment, DeploymentStatus
from spark_jobs.state.store import ControlStore


def put_in_force(
    store: ControlStore,
    manifest: str,
    *,
    number: int,
    name: str,
    settings: Mapping[str, str] | None = None,
) -> None:
    """Record an applied deployment.

    Args:
        store: the control database.
        manifest: its manifest as JSON.
        number: greater than those of earlier ones.
        name: its id.
        settings: those it was applied with.
    """
    store.begin_deployment(
        Deployment(
            deployment_id=name,
            number=number,
            status=DeploymentStatus.APPLIED,
            in_force=True,
            who="tests",
            manifest=manifest,
            settings=settings or {},
        )
    )
