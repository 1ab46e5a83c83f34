"""The checks of a walk fail where they should."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import AbstractContextManager
from types import SimpleNamespace

import pytest

from spark_jobs.gold.verify.published import Finding, Verification
from spark_jobs.planning.vector import VersionVector
from spark_jobs.serving.report.status_check import Trouble
from tests.walk.__main__ import STEPS
from tests.walk.plan import ACTIONS, FAULTS
from tests.walk.quiet import passes_but_for_drift
from tests.walk.work import rebuilt, verified
from tests.walk.world import WalkFailedError, World

DRIFT = str(Trouble("bronze.users", "a new column", "schema-drift"))
SILENT = str(Trouble("bronze.users", "no batch", "stream-silent"))


def printed(finding: Finding | str) -> str:
    """The output of ``tidemark verify VIEW --json``, after a warning."""
    if isinstance(finding, Finding):
        found = Verification(
            view="v", finding=finding, detail="", vector=VersionVector({}), version=3, rows=1
        ).as_dict()
    else:
        found = {"view": "v", "finding": finding}
    return "WARN: a warning of Spark\n" + json.dumps([found], indent=2)


@pytest.mark.parametrize("finding", [Finding.EQUAL, Finding.EQUAL_WITHIN_TOLERANCE])
def test_an_equal_view_passes_with_status_0_only(finding: Finding) -> None:
    assert verified(0, printed(finding)) == finding
    with pytest.raises(AssertionError):
        verified(1, printed(finding))


@pytest.mark.parametrize(
    "finding", [Finding.ROWS_DIFFER, Finding.COLUMNS_DIFFER, Finding.DEFINITION_CHANGED]
)
@pytest.mark.parametrize("code", [0, 1])
def test_a_view_that_differs_fails(finding: Finding, code: int) -> None:
    with pytest.raises(AssertionError, match=finding):
        verified(code, printed(finding))


@pytest.mark.parametrize("finding", ["NOT_PUBLISHED", "QUERY_FAILED", Finding.FOREIGN_COMMIT])
def test_a_view_that_cannot_be_compared_passes(finding: str) -> None:
    assert verified(1, printed(finding)) == finding


def test_an_unavailable_part_passes_and_a_silent_success_does_not() -> None:
    assert verified(1, "Error: the state database is unavailable") == "1"
    with pytest.raises(AssertionError):
        verified(0, "")


def test_a_table_that_differs_from_its_records_fails() -> None:
    assert rebuilt(1, "Error: a batch is not finished") == "1"
    assert rebuilt(0, '{"rows": 3, "right": true}') == "equal"
    with pytest.raises(AssertionError):
        rebuilt(0, '{"rows": 3, "right": false}')


def test_only_schema_drift_passes_at_a_quiet_point() -> None:
    assert passes_but_for_drift(0, "Everything that should run reports.")
    assert passes_but_for_drift(1, f"{DRIFT}\n")
    assert not passes_but_for_drift(1, f"{DRIFT}\n{SILENT}\n")
    assert not passes_but_for_drift(1, "Error: the state database is unavailable")


def test_every_planned_step_exists() -> None:
    assert STEPS.keys() == ACTIONS.keys() | FAULTS.keys()


@pytest.mark.parametrize("program", ["raise SystemExit(2)", "raise SystemExit(70)", "1 / 0"])
def test_a_command_that_does_nothing_fails_the_walk(program: str) -> None:
    """Its options were renamed, or it crashed; a part that is unavailable ends it with 1."""

    def world(source: str) -> World:
        def command(*words: str) -> AbstractContextManager[subprocess.Popen[str]]:
            return subprocess.Popen(
                [sys.executable, "-c", source, *words],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )

        return World(SimpleNamespace(command=command))  # type: ignore[arg-type]

    assert world("raise SystemExit(1)").tidemark("maintain") == (1, "")
    with pytest.raises(WalkFailedError, match="maintain --renamed"):
        world(program).tidemark("maintain", "--renamed")
