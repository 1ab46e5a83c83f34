"""The parts of the trial by kills that need no stack: its transactions, declarations, page."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

from benchmarks.kills.plan import TABLES, Statement, transactions
from benchmarks.kills.report import write_report
from benchmarks.kills.running import Outcome, declare
from benchmarks.records import run_facts
from spark_jobs.graph.compile import compile_project
from spark_jobs.graph.manifest import ApplyMode
from spark_jobs.sections import SparkSettings


def applied(accounts: set[object], one: Statement) -> int:
    """Carry out what a statement does to the keys; how many accounts it reaches."""
    match one.text.split(" ")[:3], one.values:
        case ["INSERT", "INTO", "accounts"], (key, *_):
            assert key not in accounts
            accounts.add(key)
        case ["DELETE", "FROM", "accounts"], (key,):
            accounts.remove(key)
        case ["UPDATE", "accounts", "SET"], (*_, key) if "SET id" in one.text:
            accounts.remove(key)
            assert one.values[0] not in accounts
            accounts.add(one.values[0])
        case ["UPDATE", "accounts", "SET"], (*_, key):
            assert key in accounts
        case _:
            return 0
    return 1


def test_every_statement_finds_its_row_and_every_key_is_in_use_once() -> None:
    accounts: set[object] = set()
    kinds: Counter[str] = Counter()
    for one in itertools.islice(transactions(3), 20_000):
        held = set(accounts)
        reached = sum(applied(accounts, statement) for statement in one.statements)
        kinds[f"{one.rolled_back} {one.statements[0].text[:17]}"] += 1
        if one.rolled_back:
            assert accounts == held
        elif not one.statements[0].text.startswith("TRUNCATE"):
            assert reached
    assert len(kinds) == 6
    assert len(accounts) >= 20


def test_a_seed_gives_the_same_transactions() -> None:
    one, other = (list(itertools.islice(transactions(5), 500)) for _ in range(2))
    assert one == other
    assert one != list(itertools.islice(transactions(6), 500))


def test_the_tables_are_current_rows_of_their_key(tmp_path: Path) -> None:
    declare(tmp_path)
    silver = compile_project(tmp_path).silver
    assert silver.keys() == TABLES.keys()
    for name, entry in silver.items():
        assert entry.apply is ApplyMode.UPSERT
        assert tuple(column.name for column in entry.selected) == TABLES[name]


def test_the_page_has_each_table_and_its_kills(tmp_path: Path) -> None:
    counts = dict.fromkeys(
        ("records", "applied", "superseded", "duplicate", "ignored", "quarantined", "batches"), 7
    )
    outcome = Outcome(
        transactions=10_000,
        statements=31_000,
        rolled_back=400,
        kills={"streams": 9, "connect": 11},
        killed_early=3,
        seconds=500.0,
        settled=530.4,
        tables={"accounts": {**counts, "rows": 1234, "transactions": 9_000}},
    )
    facts = run_facts(seed=1, spark=SparkSettings()).finished()
    files = write_report(outcome, facts, data=tmp_path / "data", papers=tmp_path / "papers")
    assert {file.suffix for file in files} == {".json", ".md"}
    page = (tmp_path / "papers" / "kills.md").read_text(encoding="utf-8")
    assert "- killed: connect 11 times and streams 9 times, of these 3 times" in page
    assert "- all was balanced 30 s after the last one" in page
    assert "| accounts | 9,000 | 7 | 1,234 | 7 | 7 | 7 | 7 | 7 | 7 |" in page
    assert all(len(line) < 90 for line in page.splitlines() if not line.startswith("|"))
