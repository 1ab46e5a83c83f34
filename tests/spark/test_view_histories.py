"""Every gold view of the project through random histories: incremental against its SQL."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.definitions.marked import read_marked
from spark_jobs.definitions.models import CaseFile
from spark_jobs.errors import Location
from spark_jobs.graph.manifest import Column, GoldEntry, Manifest
from spark_jobs.names import TableName
from spark_jobs.planning.decision import ReasonCode
from spark_jobs.settings import REPOSITORY, load_settings
from spark_jobs.testing.case_files import ANY_TIME, Case
from spark_jobs.testing.inputs import columns_and_keys
from spark_jobs.testing.run import prepared
from spark_jobs.testing.text_tables import NULL, TextTable
from tests.shipped import shipped_project

# The case files of the same views are followed in `make test`.
pytestmark = pytest.mark.long
VIEWS = sorted(shipped_project().gold)
# A long run sets another number.
STEPS = int(os.environ.get("TIDEMARK_HISTORY_STEPS", "1"))
ROWS = 8
NOWHERE = Location("random")


@dataclass
class RandomTable:
    """The rows of one input as text, by key; those without a key are told apart by a number.

    Attributes:
        words: what its texts are made of: mostly words that the view's SQL asks for.
    """

    columns: Sequence[Column]
    keys: Sequence[str]
    words: Sequence[str]
    rng: random.Random
    rows: dict[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)

    def row(self, now: datetime) -> tuple[str, ...]:
        return tuple(self._value(column, now) for column in self.columns)

    def key(self, row: tuple[str, ...]) -> tuple[str, ...]:
        names = [column.name for column in self.columns]
        return tuple(row[names.index(key)] for key in self.keys) or row

    def grown(self, now: datetime, count: int) -> TextTable:
        """New rows, which are remembered."""
        fresh = [row for row in (self.row(now) for _ in range(count)) if NULL not in self.key(row)]
        new = {self.key(row): row for row in fresh if self.key(row) not in self.rows}
        self.rows |= new
        return self.table(list(new.values()))

    def changed(self, now: datetime) -> TextTable:
        """Other values for some rows."""
        chosen = self.rng.sample(sorted(self.rows), min(2, len(self.rows)))
        names = [column.name for column in self.columns]
        for key in chosen:
            values = dict(zip(names, self.row(now), strict=True))
            values |= dict(zip(self.keys, key, strict=True))
            self.rows[key] = tuple(values.values())
        return self.table([self.rows[key] for key in chosen])

    def shrunk(self) -> TextTable:
        """Rows that go."""
        chosen = self.rng.sample(sorted(self.rows), min(2, len(self.rows)))
        return self.table([self.rows.pop(key) for key in chosen])

    def table(self, rows: list[tuple[str, ...]]) -> TextTable:
        return TextTable(tuple(column.name for column in self.columns), tuple(rows), NOWHERE)

    def _value(self, column: Column, now: datetime) -> str:
        rng = self.rng
        if not column.required and column.name not in self.keys and rng.random() < 0.1:
            return NULL
        kind = column.type.partition("(")[0].lower()
        match kind:
            case "bigint" | "int":
                return str(rng.randint(1, 12 if column.name in self.keys else 3))
            case "decimal":
                return rng.choice(["0.00", "5.00", "10.50"])
            case "string":
                return rng.choice(self.words)
            case "boolean":
                return rng.choice(["true", "false"])
            case "timestamp" | "date":
                back = rng.choice([timedelta(seconds=20), timedelta(minutes=4), timedelta(days=2)])
                moment = now - back * rng.randint(0, 4)
                return moment.strftime("%Y-%m-%d" if kind == "date" else "%Y-%m-%d %H:%M:%S")
            case _:
                raise AssertionError(f"no values for {column.name} {column.type}")


def words_of(entry: GoldEntry) -> list[str]:
    """The texts that a view compares with, so that its conditions are now and then true."""
    found = [word for word in re.findall(r"'([\w-]+)'", entry.sql) if not word.isdigit()]
    return [*found, "customer-1", "customer-2", "x"]


def text_of(table: TextTable) -> str:
    return "\n".join(" | ".join(row) for row in (table.columns, *table.rows))


def random_case(view: str, tables: Mapping[str, RandomTable]) -> Case:
    given = {name: text_of(one.grown(ANY_TIME, ROWS)) for name, one in tables.items()}
    content = CaseFile(description="Random.", given=given, then="-", clock=ANY_TIME)
    places = read_marked("\n".join(["given:", *(f"  {name}: x" for name in given)]), "r").places
    return Case(view, view, content, places)


@pytest.mark.parametrize("view", VIEWS)
def test_history(spark: SparkSession, shipped: Manifest, tmp_path: Path, view: str) -> None:
    rng = random.Random(view)
    # Whether random rows are good ones is not asked.
    entry = shipped.gold[view].model_copy(update={"suite": None, "grain": ()})
    project = shipped.model_copy(update={"gold": {**shipped.gold, view: entry}})
    random_tables = {
        name: RandomTable(*columns_and_keys(shipped, TableName.parse(name)), words_of(entry), rng)
        for name in entry.inputs
    }
    settings = load_settings(REPOSITORY, state_dir=tmp_path, lake_root="", control_db="")
    case = random_case(view, random_tables)
    with prepared(case, manifest=project, settings=settings, session=lambda: spark) as run:
        assert run.refresh() is ReasonCode.FIRST_BUILD
        for step in range(STEPS):
            if entry.reads_clock:
                run.clock.now += timedelta(minutes=1)
            for name, one in random_tables.items():
                run.inputs[name].delete(one.shrunk())
                if one.keys:
                    run.inputs[name].update(one.changed(run.clock.now))
                run.inputs[name].insert(one.grown(run.clock.now, 3))
                run.inputs[name].commit()
            assert run.refresh() is ReasonCode.INPUT_CHANGED_RULE, step
            found = run.verified()
            assert found.passed, (step, found)
