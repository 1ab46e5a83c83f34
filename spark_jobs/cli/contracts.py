"""The option that allows a change to break the contract of a view."""

from __future__ import annotations

from datetime import UTC, datetime
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


def without_contracts(env: str, allowed: list[str] | None) -> None:
    """Refuse the option for an environment, whose views nobody outside reads.

    Raises:
        BadParameter: the option was given.
    """
    if allowed:
        problem = f"only a promotion breaks a contract: tidemark env promote {env} has the option"
        raise typer.BadParameter(problem, param_hint="--break-contract")


def contract_problems(
    settings: Settings, project: Manifest, allowed: list[str] | None
) -> list[LakehouseError]:
    """Contracts of the running project that the project breaks; none before the first apply.

    It reads a copy of the running manifest, so it needs no database.
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
    today = datetime.now(UTC).date()
    return list(broken_contracts(running, project, today=today, allowed=allowed or ()))
