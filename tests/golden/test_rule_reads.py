"""What a refresh of a view of each rule reads, relation by relation."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from sqlglot import exp

from spark_jobs.graph.last_step import DeleteInsert
from spark_jobs.graph.maintenance.delta import StateRead, StateUpdate
from spark_jobs.graph.maintenance.derived import derived_program
from spark_jobs.graph.maintenance.program import Program
from tests.properties.maintenance import InDuckDb, canonical
from tests.properties.test_rules import INTS, RULES

READS = Path(__file__).with_name("rule_reads.txt")
HEAD = """\
The rows that a refresh reads if all tables of a view changed, without the changes themselves:
`x_old` and `x_new` are those of x before and after. `*`: only those with keys of a change.
`^`: what is made of them is restricted to such keys. `?`: a condition filters them.
`|` separates steps.

"""


def reads(name: str) -> str:
    """A line with the relations that a rule reads, in the order of the program."""
    tables = InDuckDb(frozenset(INTS))
    program = derived_program(
        canonical(RULES[name][1]), tables, {}, types=INTS, last=DeleteInsert(), prefix=""
    )
    steps = [" ".join(_read(one)) for one in queries_of(program)]
    return f"{name}: {' | '.join(filter(None, steps))}".rstrip(" ")


def queries_of(program: Program) -> Iterator[exp.Expr]:
    """What a program computes in every refresh."""
    for step in program.steps:
        match step:
            case StateRead():
                # Computed from all rows, only if it is not stored.
                continue
            case StateUpdate():
                query = step.change or step.update
            case _:
                query = step.query
        if query is not None:
            yield query
    if program.change is not None:
        yield program.change


def _read(query: exp.Expr) -> Iterator[str]:
    for table in query.find_all(exp.Table):
        name, _, which = table.name.removeprefix("silver_").rpartition("_")
        if which not in {"old", "new"}:
            # A change, or a step that was computed before.
            continue
        keys, filtered = "", ""
        around = own = table.find_ancestor(exp.Select)
        while around is not None:
            if any(join.this.alias == "__k" for join in around.args.get("joins") or ()):
                keys += "*" if around is own.find_ancestor(exp.Select) else "^"
            condition = around.args.get("where")
            if condition and all(one.name != "__sum" for one in condition.find_all(exp.Column)):
                filtered = "?"
            around = around.find_ancestor(exp.Select)
        yield f"{name}_{which}{keys}{filtered}"


def test_every_rule_reads_what_was_reviewed() -> None:
    text = HEAD + "\n".join(map(reads, RULES)) + "\n"
    if os.environ.get("REWRITE"):
        READS.write_text(text, encoding="utf-8")
    assert text == READS.read_text(encoding="utf-8")
