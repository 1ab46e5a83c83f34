"""Runs a case: each step changes the inputs, refreshes the view, and compares its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_jobs.definitions.vocabulary import Strategy
from spark_jobs.errors import Location
from spark_jobs.gold.refresh.steps import Refresher
from spark_jobs.gold.verify.published import Verification, verify
from spark_jobs.graph.manifest import Manifest
from spark_jobs.names import TableName, passed_keys
from spark_jobs.planning.decision import ReasonCode
from spark_jobs.settings import Settings
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.reader import read_columns
from spark_jobs.testing.case_files import ANY_TIME, Case, changes_of
from spark_jobs.testing.errors import CaseTableError
from spark_jobs.testing.inputs import InputTable, columns_and_keys, schema_of
from spark_jobs.testing.multisets import Row, difference
from spark_jobs.testing.recompute import recomputed
from spark_jobs.testing.stopped_clock import StoppedClock
from spark_jobs.testing.text_tables import TextTable, read_text_table, typed_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GIVEN = "given"
CHANGES = {
    "delete": InputTable.delete,
    "update": InputTable.update,
    "insert": InputTable.insert,
}
# Settings for queries over a few rows, which take longer to compile than to interpret.
FEW_ROWS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}


@dataclass(frozen=True)
class StepResult:
    """The result of a step.

    Attributes:
        reason: of the refresh's decision.
        missing: expected rows that are missing.
        unexpected: rows that were not expected.
    """

    step: str
    reason: ReasonCode
    missing: tuple[Row, ...]
    unexpected: tuple[Row, ...]

    @property
    def passed(self) -> bool:
        return not self.missing and not self.unexpected

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object: the attributes, and the result under the names of ``passed_keys``."""
        return {**vars(self), **passed_keys(passed=self.passed)}


@dataclass(frozen=True)
class CaseResult:
    """The result of a case: its steps up to the first failed one, and a recompute."""

    case: Case
    steps: tuple[StepResult, ...]
    verification: Verification

    @property
    def passed(self) -> bool:
        return self.verification.passed and all(one.passed for one in self.steps)

    @property
    def remarks(self) -> tuple[str, ...]:
        """The difference from a recompute, if only that fails the case."""
        told = self.steps[-1].passed and not self.verification.passed
        return (f"  {self.verification.detail}",) if told else ()

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object: ``view``, ``steps`` and ``verification``."""
        return {
            "view": self.case.view,
            "steps": [one.as_dict() for one in self.steps],
            "verification": self.verification.as_dict(),
        }


@dataclass
class CaseRun:
    """A case in its own lake."""

    case: Case
    refresher: Refresher
    inputs: Mapping[str, InputTable]
    clock: StoppedClock
    ticks: int = 0

    def run(self) -> CaseResult:
        """Run the steps.

        Raises:
            CaseTableError: rows of the case do not fit their table.
            LakehouseError: the view cannot be refreshed.
        """
        content = self.case.content
        steps = [self.refreshed(GIVEN, content.then, "then")]
        for at, step in enumerate(content.when):
            if not steps[-1].passed:
                break
            for kind, tables in changes_of(step).items():
                for name, text in tables.items():
                    table = self.table(text, "when", at, kind, name)
                    CHANGES[kind](self.inputs[name], table)
            for one in self.inputs.values():
                one.commit()
            self.clock.now = step.clock or self.clock.now
            steps.append(self.refreshed(step.step, step.then, "when", at, "then"))
        return CaseResult(self.case, tuple(steps), self.verified())

    def refreshed(self, step: str, then: str, *path: str | int) -> StepResult:
        """Refresh the view and compare its rows with the expected ones.

        Args:
            step: name of the step, for messages.
            then: text of the table of expected rows.
            path: place of the text in the case file.

        Raises:
            CaseTableError: the expected rows have other columns, or a value that is not of its
                type.
            LakehouseError: any error of a refresh.
        """
        reason = self.refresh()
        expected = self.table(then, *path)
        location = self.refresher.context.published_at(self.case.view)
        actual = read_columns(location, list(self.columns))
        if expected.columns != self.columns:
            problem = f"the view's columns are {' | '.join(self.columns)}"
            hint = "Name all of them, in their order."
            raise CaseTableError(problem, hint, location=expected.location)
        rows = typed_rows(expected, actual.schema)
        missing, unexpected = difference(rows, actual)
        return StepResult(step, reason, missing, unexpected)

    def refresh(self) -> ReasonCode:
        """Refresh the view; returns the reason code of the decision."""
        self.ticks += 1
        found = self.refresher.run(self.case.view, tick=f"{GIVEN}+{self.ticks}")
        return found.plan.reason.code

    def verified(self) -> Verification:
        """The published table against its SQL over the inputs.

        Raises:
            LakehouseError: the SQL cannot be computed.
        """
        context, view = self.refresher.context, self.case.view
        if context.in_process:
            return recomputed(context, self.refresher.explain(view))
        return verify(context, view)

    @property
    def columns(self) -> tuple[str, ...]:
        """The view's columns."""
        entry = self.refresher.context.entry(self.case.view)
        return tuple(column.name for column in entry.columns)

    def table(self, text: str, *path: str | int) -> TextTable:
        """A table of the case.

        Args:
            text: the table.
            path: its place in the case file, for messages.

        Raises:
            CaseTableError: the text is not a table.
        """
        return read_text_table(text, self.case.places.value_of(*path))


@contextmanager
def prepared(
    case: Case,
    *,
    manifest: Manifest,
    settings: Settings,
    session: Callable[[], SparkSession] | None,
) -> Iterator[CaseRun]:
    """A case whose inputs have the given rows, and whose view is not built yet.

    Args:
        case: the case.
        manifest: the compiled project.
        settings: of an empty state directory, for the lake and the control database.
        session: opens a Spark session; None: DuckDB computes everything in this process.

    Raises:
        CaseTableError: rows of the case do not fit their table.
        NotTranslatedError: only Spark can compute the case; ``run`` raises it too.
    """
    clock = StoppedClock(case.content.clock or ANY_TIME)
    own = alone(manifest, case.view)
    if session is None:
        own = without_layout(own, case.view)
    Path(settings.state).mkdir(parents=True, exist_ok=True)
    with ControlStore.open(settings.control_url) as store:
        how: dict[str, Any] = {} if session is None else {"session_factory": lambda _: session()}
        refresher = Refresher(settings, own, store, now=lambda: clock.now, **how)
        refresher.context.in_process = session is None
        places = case.places
        inputs = {}
        for name in own.gold[case.view].inputs:
            table = TableName.parse(name)
            columns, keys = columns_and_keys(own, table)
            schema = schema_of(columns, lambda: refresher.context.spark)
            given = TextTable((), (), Location(places.file))
            if name in case.content.given:
                place = places.value_of("given", name)
                given = read_text_table(case.content.given[name], place)
            inputs[name] = InputTable(
                refresher.context.locations.of(table),
                schema,
                keys=keys,
                rows=typed_rows(given, schema),
            )
        yield CaseRun(case, refresher, inputs, clock)


def alone(manifest: Manifest, view: str) -> Manifest:
    """The project for a case, in which even the smallest tables are refreshed incrementally.

    External tables get other locations, because a case writes its inputs.
    """
    entry = manifest.gold[view]
    if entry.strategy is Strategy.AUTO:
        entry = entry.model_copy(update={"strategy": Strategy.INCREMENTAL})
    sources = {
        name: source.model_copy(update={"location": None})
        for name, source in manifest.sources.items()
    }
    gold = {**manifest.gold, view: entry}
    return manifest.model_copy(update={"sources": sources, "gold": gold})


def without_layout(manifest: Manifest, view: str) -> Manifest:
    """The project with a view without a layout, because only Spark can lay out a table."""
    entry = manifest.gold[view].model_copy(update={"partition_by": (), "cluster_by": ()})
    return manifest.model_copy(update={"gold": {**manifest.gold, view: entry}})
