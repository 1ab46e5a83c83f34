"""Every condition that can reach an alert has a runbook, and that page names it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest

import spark_jobs
from spark_jobs.orchestration.maintenance import MAINTENANCE
from spark_jobs.orchestration.runbooks import RUNBOOKS
from spark_jobs.settings import REPOSITORY

ROOT = Path(spark_jobs.__file__).parent
# A mistake in a declaration reaches a task inside of PROBLEMS, which has a runbook.
DECLARATIONS = ("spark_jobs.definitions.", "spark_jobs.graph.")
# Started by a person at a terminal, although a task's modules import the module of the error.
NO_TASK = ("spark_jobs.deploy.", "spark_jobs.stack.", "spark_jobs.bronze.seed")
BY_HAND = {
    "SEED_UNREADABLE": "tidemark seed",
    "SEED_REJECTED": "tidemark seed",
    "FIXED_VALUES_FILE": "tidemark reprocess",
    "FORGET_COLUMN": "tidemark forget",
    "FORGET_PENDING": "tidemark forget",
    "FORGET_VALUE": "tidemark forget",
    "DEPLOYMENT_OVERTAKEN": "tidemark apply",
}
BASES = {"REFUSED", "LAKEHOUSE_ERROR"}


def reached() -> set[str]:
    """The modules that tasks import, and those of the verbs that they run."""
    graph = grimp.build_graph("spark_jobs")
    verbs = {f"spark_jobs.cli.{verb.words[0]}" for one in MAINTENANCE for verb in one.verbs}
    tasks = {one for one in graph.modules if one.startswith("spark_jobs.orchestration")}
    roots = tasks | verbs
    return roots.union(*(graph.find_upstream_modules(one) for one in roots))


def conditions(module: str) -> Iterator[str]:
    path = ROOT.parent.joinpath(*module.split(".")).with_suffix(".py")
    tree = ast.parse(path.read_text() if path.exists() else "")
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id="condition")], value=ast.Constant(value=str(one))):
                yield one


def alerting() -> set[str]:
    modules = [one for one in reached() if not one.startswith((*DECLARATIONS, *NO_TASK))]
    return {one for module in modules for one in conditions(module)} - BASES - BY_HAND.keys()


def test_every_condition_that_can_alert_has_a_runbook() -> None:
    found = alerting()
    assert len(found) > 70
    assert sorted(found - RUNBOOKS.keys()) == []


def test_no_entry_is_for_a_condition_that_is_gone() -> None:
    known = {one for path in ROOT.rglob("*.py") for one in conditions(module_of(path))}
    assert sorted((RUNBOOKS.keys() | BY_HAND.keys()) - known) == []


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)


@pytest.mark.parametrize(("condition", "runbook"), RUNBOOKS.items())
def test_the_runbook_names_the_condition(condition: str, runbook: str) -> None:
    text = Path(REPOSITORY, f"docs/runbooks/{runbook}.md").read_text(encoding="utf-8")
    assert f"`{condition}`" in text
