"""``tidemark lint``: lists views whose refresh a change of the project makes more expensive."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from spark_jobs.cli.contracts import BreakContract
from spark_jobs.errors import LakehouseError, ProblemsError
from spark_jobs.names import passed_keys
from spark_jobs.settings import load_settings

if TYPE_CHECKING:
    from spark_jobs.serving.report.lint_changes import ViewChange


def lint(
    context: typer.Context,
    against: Annotated[
        str, typer.Option(metavar="REF", help="A commit, branch or tag to compare with.")
    ],
    break_contract: BreakContract = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Compare views with another commit; exit with 1 if one becomes full or breaks a contract."""
    from spark_jobs.deploy.contracts import broken_contracts
    from spark_jobs.serving.report.lint_changes import ChangeOfRule, changes_between
    from spark_jobs.serving.report.lint_reference import manifest_at
    from spark_jobs.storage.compiled import inspect_settings

    settings = load_settings(context.obj)
    now, problems = inspect_settings(settings)
    if problems:
        raise ProblemsError(problems)
    before, unread = manifest_at(settings, against)
    found = changes_between(before, now, project=settings.project_dir)
    # A view that could not be read in the other commit cannot be compared.
    today = datetime.now(UTC).date()
    broken = list(broken_contracts(before, now, today=today, allowed=break_contract or ()))
    failed = bool(broken) or any(one.change is ChangeOfRule.BECAME_FULL for one in found)
    if as_json:
        answer = {
            "against": against,
            **passed_keys(passed=not failed),
            "changes": [one.as_dict() for one in found],
            "contracts": [one.as_dict() for one in broken],
            "not_compared": [one.as_dict() for one in unread],
        }
        typer.echo(json.dumps(answer, indent=2))
    else:
        _show(found, broken, unread, against)
    if failed:
        raise typer.Exit(1)


def _show(
    found: list[ViewChange],
    broken: Sequence[LakehouseError],
    unread: list[LakehouseError],
    against: str,
) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for problem in broken:
        console.print(problem.render(), markup=False)
    for one in found:
        console.print(one.text, markup=False)
    if unread:
        console.print(f"{len(unread)} problems at {against}; their views are not compared.")
    if not found:
        console.print(f"Every view has the same strategy as at {against}.")
