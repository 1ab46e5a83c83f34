"""Stage: computes the result of a refresh once, beside the published table."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, assert_never

import pyarrow as pa

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.base.errors import QueryFailedError
from spark_jobs.gold.compute.increment import Change, Computation, computation
from spark_jobs.gold.compute.pinned import check_inputs, query_failures
from spark_jobs.gold.compute.protocol import SPARK, Engine
from spark_jobs.gold.compute.ranges import write_range
from spark_jobs.gold.compute.row_change import change_here, change_in_spark
from spark_jobs.gold.compute.run import StagedChange, run
from spark_jobs.gold.engine import choice
from spark_jobs.gold.engine.multisets import LACKING
from spark_jobs.gold.refresh.compared import compared_rows
from spark_jobs.graph.duck.errors import NotTranslatedError
from spark_jobs.graph.duck.staged import DELETE, INSERT, OPERATION
from spark_jobs.graph.last_step import LastStep, Overwrite, RowStep, matched_columns
from spark_jobs.graph.type_agreement import compared
from spark_jobs.names import TableVersion
from spark_jobs.planning.decision import Full, Promotion, Range, Rollback
from spark_jobs.planning.last_step import last_step
from spark_jobs.planning.watermark import states_as_dict, states_from_dict
from spark_jobs.planning.work import WorkItem
from spark_jobs.state.attempts import RefreshAttempt
from spark_jobs.state.failpoints import failpoint
from spark_jobs.storage import log, policy, reader, writer
from spark_jobs.storage.columns import same_row
from spark_jobs.storage.delta import Txn
from spark_jobs.storage.history import discard_table
from spark_jobs.storage.rows import RowChange, Rows, rows_here

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TXN = Txn("stage", 1)
# In the text of Spark's errors about values: a division by zero, an overflow, a text that is no
# number.
_BAD_VALUE = "SQLSTATE: 22"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class StagedResult:
    """A result that waits for its audit.

    Attributes:
        rows: rows of the table if it were published.
        bytes: size of the staged files.
        deleted: rows to delete from the published table; None if the whole result is staged.
        inserted: rows to insert into it; None likewise.
        base: version of the published table that the change applies to.
        states: the aggregate state that belongs to the change.
        counted: whether aggregate state had to be computed from all rows.
        engine: name of the engine that computed it.
    """

    view: str
    attempt_id: str
    location: str
    rows: int
    bytes: int
    deleted: int | None = None
    inserted: int | None = None
    base: int | None = None
    states: Mapping[str, TableVersion] = field(default_factory=dict)
    counted: bool = False
    engine: str = SPARK


def staged_once(context: GoldContext, work: WorkItem) -> StagedResult:
    """The attempt's result, staged now or by a process that was killed.

    Raises:
        AttemptStateError: the plan was to skip.
        BaseMovedError: another publication was committed after the plan.
        InputReplacedError: an input was dropped or recreated.
        QueryFailedError: Spark refuses or fails the query.
        UntypedColumnError: a column has no type.
    """
    # A range is staged in pieces and continues after the last one.
    in_pieces = isinstance(work.decision, Range)
    if not in_pieces and log.table_version(staged_at(context, work)) is not None:
        return staged_result(context, work)
    return stage(context, work, computation(context, work))


def stage(context: GoldContext, work: WorkItem, computation: Computation) -> StagedResult:
    """Write the result, or its change, to the attempt's own table.

    Raises:
        BaseMovedError: another publication was committed while a range was computed.
        InputReplacedError: an input was dropped or recreated.
        QueryFailedError: Spark refuses or fails the query.
        UntypedColumnError: a column has no type.
    """
    location = staged_at(context, work)
    with query_failures(work.view):
        _write(context, work, computation, location)
    return staged_result(context, work)


def staged_result(context: GoldContext, work: WorkItem) -> StagedResult:
    """What an attempt has staged, read from the logs only."""
    location = staged_at(context, work)
    size = log.size(location)
    metadata = log.commits(location, limit=1)[0].metadata or {}
    engine = str(metadata.get("engine", SPARK))
    if isinstance(last_step_of(context, work), Overwrite):
        return StagedResult(
            work.view, work.attempt_id, location, size.rows or 0, size.bytes, engine=engine
        )
    counts = metadata.get("rows") or log.rows_by_partition(location, OPERATION)
    deleted, inserted = int(counts.get(DELETE, 0)), int(counts.get(INSERT, 0))
    base = int(metadata["base"])
    before = log.size(context.published_at(work.view), base).rows or 0
    return StagedResult(
        work.view,
        work.attempt_id,
        location,
        before - deleted + inserted,
        size.bytes,
        deleted=deleted,
        inserted=inserted,
        base=base,
        states=states_from_dict(metadata.get("states") or {}),
        counted=bool(metadata.get("counted")),
        engine=engine,
    )


def last_step_of(context: GoldContext, work: WorkItem) -> LastStep:
    """How the staged rows get into the published table."""
    return last_step(work.decision, context.entry(work.view).maintenance)


def staged_at(context: GoldContext, work: WorkItem | RefreshAttempt) -> str:
    """Location of an attempt's staged table."""
    return context.lake.staging(work.view, work.attempt_id)


def staged_rows(context: GoldContext, work: WorkItem) -> DataFrame:
    """The table as it would be after publishing, with its columns."""
    step = last_step_of(context, work)
    if isinstance(step, Overwrite):
        return reader.read(context.spark, staged_at(context, work))
    staged = staged_result(context, work)
    change = staged_rows_changed(context, staged, step)
    published = reader.read(context.spark, context.published_at(work.view), staged.base)
    same = same_row("p", "l", matched_columns(step, published.columns))
    kept = published.alias("p").join(change.deleted.frame.alias("l"), same, "left_anti")
    return kept.unionAll(change.inserted.frame)


def staged_content(context: GoldContext, work: WorkItem) -> Rows:
    """The same, wherever the rows are.

    Raises:
        NotTranslatedError: there is no Spark, and its files are large or only Spark can read them.
    """
    if not context.in_process:
        return Rows(lambda: staged_rows(context, work))
    kinds = {one.name: one.type for one in log.schema(staged_at(context, work))}
    return rows_here(staged_here(context, work), kinds, lambda: context.spark)


def staged_here(context: GoldContext, work: WorkItem) -> pa.Table:
    """The table as it would be after publishing, as Arrow data.

    Raises:
        NotTranslatedError: its files are large, or only Spark can read them.
    """
    step = last_step_of(context, work)
    if isinstance(step, Overwrite):
        return _here(staged_at(context, work))
    published = _here(context.published_at(work.view))
    change = staged_rows_changed(context, staged_result(context, work), step)
    matched = list(matched_columns(step, published.column_names))
    found, held = (one.select(matched).to_pylist() for one in (change.deleted.table, published))
    gone = set(map(repr, found))
    kept = [
        row for row, key in zip(published.to_pylist(), held, strict=True) if repr(key) not in gone
    ]
    came = change.inserted.table.select(published.column_names).to_pylist()
    return pa.Table.from_pylist([*kept, *came], schema=published.schema)


def _here(location: str) -> pa.Table:
    rows = reader.few_rows(location)
    if rows is None:
        raise NotTranslatedError(f"the files of {location}, which Delta's reader must read")
    return rows


def staged_rows_changed(context: GoldContext, staged: StagedResult, step: RowStep) -> RowChange:
    """The rows of a staged change.

    Args:
        context: settings, manifest and locations of the project.
        staged: a result whose table has the view's columns and ``__operation``.
        step: how a row to delete is found in the published table.
    """
    kinds = {one.name: one.type for one in log.schema(staged.location) if one.name != OPERATION}
    deletes, inserts = staged.deleted or 0, staged.inserted or 0
    few = compared(kinds.values()) and policy.RESULT.fits(rows=deletes + inserts)
    if few and (rows := reader.few_rows(staged.location)) is not None:
        return change_here(rows, kinds=kinds, step=step, spark=lambda: context.spark)
    frame = reader.read(context.spark, staged.location)
    return change_in_spark(frame, deletes=deletes, inserts=inserts, kinds=kinds, step=step)


def discard(context: GoldContext, work: WorkItem | RefreshAttempt) -> None:
    """Delete an attempt's staged table."""
    discard_table(staged_at(context, work))


def _write(context: GoldContext, work: WorkItem, computation: Computation, location: str) -> None:
    match computation:
        case Range(rows=rows):
            write_range(context, work, rows, location)
            return
        case Change():
            _write_change(context, work, computation, location)
        case Full(columns=columns):
            _write_result(context, work, columns, location)
        case Rollback(version=earlier):
            frame = reader.read(context.spark, context.published_at(work.view), earlier)
            writer.replace(Rows.of(frame), location, txn=_TXN)
        case Promotion(environment=name, version=built):
            frame = reader.read(context.spark, context.lake.environment(name, work.view), built)
            comments = {one.name: one.meaning for one in context.entry(work.view).columns}
            writer.replace(Rows.of(frame), location, txn=_TXN, comments=comments)
        case _:
            assert_never(computation)
    failpoint("gold.stage.written")


def _write_result(
    context: GoldContext, work: WorkItem, columns: Collection[str] | None, location: str
) -> None:
    def computed(engine: Engine) -> tuple[Rows, str]:
        check_inputs(context, work.view, work.vector)
        return engine.whole(work, columns)(), engine.name

    with choice.computed(context, work.view, computed) as (rows, engine):
        failpoint("gold.stage.before_write")
        comments = {one.name: one.meaning for one in context.entry(work.view).columns}
        metadata = {"engine": engine}
        writer.replace(rows, location, txn=_TXN, metadata=metadata, comments=comments)


def _write_change(context: GoldContext, work: WorkItem, change: Change, location: str) -> None:
    try:
        with query_failures(work.view):
            _write_change_once(context, work, change, location)
    except QueryFailedError as error:
        # A row that Spark cannot compute, and that was corrected since, is still among the changes.
        if _BAD_VALUE not in error.cause or context.in_process or not _several_commits(change):
            raise
        if not _has_variants(change):
            _log.warning("gold.%s: computed again from the net changes, for a value", work.view)
            _write_change_once(context, work, change, location, net=True)
            return
        _log.warning("gold.%s: compared with the result of its SQL, for a value", work.view)
        base = change.relations.base.version
        with compared_rows(context, work, base) as rows:
            # The next refresh computes the aggregate state from all rows.
            staged = StagedChange(rows, states={}, counted=True, engine=SPARK)
            _write_staged(staged, base, location)


def _several_commits(change: Change) -> bool:
    ranges = change.relations.ranges.values()
    return any(one.after.version > one.before.version + 1 for one in ranges)


def _has_variants(change: Change) -> bool:
    """Whether a changed table has variants, so that Spark cannot group its rows."""
    relations = change.relations
    return any(
        "variant" in one.type
        for table in relations.changed
        for one in log.schema(relations.location(table), relations.ranges[table].after.version)
    )


def _write_change_once(
    context: GoldContext, work: WorkItem, change: Change, location: str, *, net: bool = False
) -> None:
    def computed(engine: Engine) -> StagedChange:
        return run(change, engine, work)

    base = change.relations.base.version
    with choice.computed(context, work.view, computed, changed=work.changed, net=net) as staged:
        try:
            with query_failures(work.view):
                _write_staged(staged, base, location)
        except QueryFailedError as error:
            if LACKING not in error.cause:
                raise
            _log.warning("gold.%s: compared with the result of its SQL, for %s", work.view, LACKING)
            with compared_rows(context, work, base) as rows:
                _write_staged(replace(staged, rows=rows), base, location)


def _write_staged(change: StagedChange, base: int, location: str) -> None:
    failpoint("gold.stage.before_write")
    metadata: dict[str, object] = {
        "base": base,
        "states": states_as_dict(change.states),
        "counted": change.counted,
        "engine": change.engine,
    }
    few = change.rows.few
    if few is not None:
        # Spark writes the other results partitioned, so that the log has their counts.
        counted = few.column(OPERATION).value_counts().to_pylist()
        metadata["rows"] = {one["values"]: one["counts"] for one in counted}
    writer.replace(change.rows, location, txn=_TXN, metadata=metadata, partition_by=[OPERATION])
