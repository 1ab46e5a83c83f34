"""The option by which a person lets a change break the contract of a view, once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from spark_jobs.errors import LakehouseError
from spark_jobs.settings import Settings

if TYPE_CHECKING:
    from spark_jobs.graph.manifest import Manifest

BreakContract = Annotated[
    list[str] | None,
    typer.Option(
        "--break-contract",
        metavar="VIEW",
        help="Let this change break the contract of a view; may be given several times.",
    ),
]


def contract_problems(
    settings: Settings, project: Manifest, allowed: list[str] | None
) -> list[LakehouseError]:
    """The contracts of what runs that the project does not keep; none where nothing was applied.

    It reads the copy of the manifest in force, so it asks no database.
    """
    from pydantic import ValidationError

    from spark_jobs.deploy.contracts import broken_contracts
    from spark_jobs.graph.manifest import Manifest

    try:
        running = Manifest.read(settings.manifest_file)
    except (FileNotFoundError, ValidationError):
        return []
    if running.deployment is None:
        return []
    return list(broken_contracts(running, project, allowed=allowed or ()))
