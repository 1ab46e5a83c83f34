"""Which tables are reconciled, and what is said of those that differ from their database."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.graph.manifest import Manifest
from spark_jobs.serving.project import OpenProject
from spark_jobs.serving.report.balances import (
    database_problems,
    reconcilable,
    transaction_lines,
)
from spark_jobs.settings import load_settings
from spark_jobs.silver.check.source_database import SourceDifference, Unfit
from spark_jobs.silver.check.transactions import IncompleteTransaction
from spark_jobs.silver.errors import SilverTableUnknownError
from spark_jobs.state.store import ControlStore
from tests.shipped import shipped_project


@pytest.fixture(scope="module")
def manifest() -> Manifest:
    return shipped_project()


def test_tables_are_chosen_by_name(tmp_path: Path, manifest: Manifest) -> None:
    settings = load_settings(tmp_path, state_dir=tmp_path / "state")
    with ControlStore.open(settings.control_url) as store:
        project = OpenProject(settings, manifest, store)
        found = reconcilable(project, ["users", "silver.orders"])
        assert {one.name for one in found} == {"orders", "users"}
        assert len(reconcilable(project, None)) == len(manifest.silver)
        with pytest.raises(SilverTableUnknownError) as caught:
            reconcilable(project, ["silver.orders", "gold.orders"])
    assert caught.value.table == "gold.orders"


def test_every_finding_has_a_line_and_no_personal_data(manifest: Manifest) -> None:
    source, entry = manifest.sources["users"], manifest.silver["users"]
    personal = next(column.name for column in entry.columns if column.pii)
    row = {"user_id": 7, personal: "someone"}
    found = database_problems(
        SourceDifference(
            source_rows=10,
            missing=2,
            unexpected=1,
            examples=(("source", row), ("silver", row)),
            unfit=(Unfit("TYPE_MISMATCH", "segment", 3, row),),
            unread=(("tier", "tsquery"),),
        ),
        source,
        entry,
    )
    starts = [
        "column 'tier' is not compared",
        "3 rows of the source cannot be in silver: TYPE_MISMATCH segment",
        "silver rows = source rows: 2 rows are only in the source, 1 only in silver",
        "only in source",
        "only in silver",
    ]
    assert [line[: len(start)] for line, start in zip(found, starts, strict=True)] == starts
    assert not [line for line in found if "someone" in line]


def test_equal_tables_have_no_problem(manifest: Manifest) -> None:
    source, entry = manifest.sources["users"], manifest.silver["users"]
    assert database_problems(SourceDifference(10, 0, 0), source, entry) == []


def test_a_transaction_whose_rows_a_snapshot_has_is_told_and_is_no_problem() -> None:
    found = [IncompleteTransaction(str(number), 2, 1) for number in range(571, 578)]
    replaced = IncompleteTransaction("580", 1, 0, in_snapshot=True)
    problems, notes = transaction_lines([*found, replaced])
    (problem,), (note,) = problems, notes
    assert problem.startswith("bronze lacks changes of 7 transactions: 571 (1 of 2), 572 (1 of 2)")
    assert problem.endswith("575 (1 of 2), ...")
    assert note.startswith("bronze lacks changes of 1 transaction: 580 (0 of 1); a later snapshot")
    assert transaction_lines([]) == ([], [])
