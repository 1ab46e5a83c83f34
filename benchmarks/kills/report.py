"""The result of a run as JSON and as a Markdown page."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from benchmarks.kills.running import Outcome
from benchmarks.records import Facts

NAME = "kills"
_COLUMNS = ("rows", "records", "applied", "superseded", "duplicate", "ignored", "quarantined")


def write_report(outcome: Outcome, facts: Facts, *, data: Path, papers: Path) -> list[Path]:
    """Write both.

    Args:
        outcome: the results of the run.
        facts: about the machine and the run.
        data: the folder of the JSON.
        papers: the folder of the page.
    """
    told = {"facts": asdict(facts), "outcome": asdict(outcome)}
    files = {
        data / f"{NAME}.json": json.dumps(told, indent=1) + "\n",
        papers / f"{NAME}.md": "\n".join([*_page(outcome, facts), ""]),
    }
    for file, words in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(words, encoding="utf-8")
    return list(files)


def _page(outcome: Outcome, facts: Facts) -> Iterator[str]:
    kills = " and ".join(f"{part} {count} times" for part, count in sorted(outcome.kills.items()))
    yield "# Transactions while parts are killed"
    yield ""
    yield from textwrap.wrap(
        "Written by `make bench-kills`; [how it is done](README.md#kills). In the end silver "
        "equalled Postgres, row by row, `tidemark reconcile` found all balanced, and bronze had "
        "every change of every transaction that the connector told of: each one that the "
        "database had committed.",
        width=88,
    )
    yield ""
    yield f"- {facts.started_at} to {facts.finished_at}, commit {facts.commit}, seed {facts.seed}"
    loads = " and ".join(f"{one[0]:.1f}" for one in facts.load)
    yield from textwrap.wrap(
        f"- {facts.processor}, {facts.cores} cores, {facts.memory / 2**30:.0f} GiB, "
        f"load {loads} at start and end",
        width=88,
        subsequent_indent="  ",
    )
    yield from textwrap.wrap(
        f"- {outcome.transactions:,} transactions of {outcome.statements:,} statements in "
        f"{outcome.seconds:,.0f} s, and {outcome.rolled_back:,} that were rolled back",
        width=88,
        subsequent_indent="  ",
    )
    yield f"- killed: {kills}, of these {outcome.killed_early} times before it served again"
    yield f"- all was balanced {outcome.settled - outcome.seconds:,.0f} s after the last one"
    yield ""
    yield f"| table | transactions | batches | {' | '.join(_COLUMNS)} |"
    yield f"|---|{'---:|' * (2 + len(_COLUMNS))}"
    for table, found in sorted(outcome.tables.items()):
        counts = [f"{found[name]:,}" for name in ("transactions", "batches", *_COLUMNS)]
        yield f"| {table} | {' | '.join(counts)} |"
