"""The equations between bronze, silver, quarantine and the counts of the batches."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.graph.manifest import ApplyMode
from spark_jobs.names import Disposition
from spark_jobs.silver.check.reconcile import SilverFacts, balance, covered_version
from spark_jobs.silver.store.releases import Release, corrected
from spark_jobs.state.batches import SilverTotals

TOTALS = SilverTotals(
    silver="x", records=6, applied=2, superseded=0, quarantined=1, duplicate=2, ignored=1
)
FACTS = SilverFacts(
    apply=ApplyMode.APPEND,
    totals=TOTALS,
    covered_rows=6,
    bronze=Counter((0, offset) for offset in range(6)),
    silver=Counter([(0, 0), (0, 3)]),
    quarantine=Counter([(0, 1)]),
)


def test_balanced():
    found = balance(FACTS)
    assert (found.problems, found.pending, found.silver, found.quarantine) == ((), 0, 2, 1)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            {"totals": replace(TOTALS, duplicate=1)},
            "records = applied + superseded + quarantined + duplicate + ignored: 6 is not 5",
        ),
        ({"silver": Counter([(0, 0)])}, "silver rows = applied: 1 is not 2"),
        ({"quarantine": Counter()}, "quarantine rows = quarantined: 0 is not 1"),
        ({"quarantine": Counter([(0, 0)])}, "1 records are in silver and in quarantine"),
        ({"silver": Counter([(0, 3), (0, 3)])}, "silver: 1 rows repeat a record"),
        (
            {"silver": Counter([(0, 0), (0, 9)])},
            "1 records in silver or quarantine are not in bronze",
        ),
        (
            {"bronze": Counter((0, offset) for offset in range(9)), "covered_rows": 7},
            "bronze rows covered = records: 7 is not 6",
        ),
    ],
)
def test_each_broken_balance_is_reported(change: dict[str, Any], problem: str):
    assert balance(replace(FACTS, **change)).problems == (problem,)


@pytest.mark.parametrize(
    ("changes", "problems"),
    [
        ([(0, 0), (0, 3), (0, 4)], ()),
        ([(0, 0), (0, 3)], ("remembered changes = applied + superseded: 2 is not 3",)),
        ([(0, 0), (0, 3), (0, 3)], ("remembered changes: 1 rows repeat a record",)),
    ],
)
def test_a_history_remembers_every_change(
    changes: list[tuple[int, int]], problems: tuple[str, ...]
):
    totals = replace(TOTALS, superseded=1, duplicate=1)
    facts = replace(FACTS, apply=ApplyMode.HISTORY, totals=totals, changes=Counter(changes))
    assert balance(facts).problems == problems


RELEASED = (
    Release((0, 1), 1, Disposition.APPLIED),
    Release((0, 5), 2, Disposition.DUPLICATE),
)


def test_a_released_record_counts_where_it_ended():
    released = replace(
        FACTS,
        silver=Counter([(0, 0), (0, 1), (0, 3)]),
        quarantine=Counter(),
        released=RELEASED,
    )
    found = balance(released)
    assert found.problems == ()
    assert (found.totals.applied, found.totals.quarantined, found.totals.accounted) == (3, 0, 6)
    # Another epoch has other releases.
    assert corrected(TOTALS, RELEASED, epoch=2).duplicate == TOTALS.duplicate + 1


def test_an_interrupted_release_is_reported():
    found = balance(replace(FACTS, silver=Counter([(0, 0), (0, 1), (0, 3)]), released=RELEASED))
    [problem] = found.problems
    assert problem.startswith("1 records are being reprocessed")


def test_unprocessed_records_are_pending():
    more = Counter((0, offset) for offset in range(9))
    found = balance(replace(FACTS, bronze=more, silver=Counter([(0, 0), (0, 3), (0, 7)])))
    assert (found.pending, found.problems) == (3, ())


@pytest.mark.parametrize(("index", "covered"), [(-1, 4), (3, None)])
def test_covered_version(tmp_path: Path, index: int, covered: int | None):
    assert covered_version(str(tmp_path)) == -1
    offset = {"reservoirVersion": 5, "index": index}
    for folder, text in (("offsets", f"v1\n{{}}\n{json.dumps(offset)}"), ("commits", "v1\n{}")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "7").write_text(text)
    assert covered_version(str(tmp_path)) == covered
