"""Recomputes a range of a view's rows in pieces, as rows to delete and to insert.

Each piece is one commit on the staged table, with the piece's number as the transaction version. So
a killed attempt continues after the last piece that it committed.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.base.errors import BaseMovedError
from spark_jobs.gold.base.publications import latest_publication
from spark_jobs.gold.compute.increment import base_of
from spark_jobs.gold.compute.pinned import named_inputs, pinned_result
from spark_jobs.gold.compute.relations import prefix_of
from spark_jobs.graph.duck.staged import DELETE, INSERT, OPERATION
from spark_jobs.planning.ranges import RowRange, TimeRange
from spark_jobs.planning.work import WorkItem
from spark_jobs.state.failpoints import failpoint
from spark_jobs.storage import log, reader, writer
from spark_jobs.storage.columns import quoted
from spark_jobs.storage.delta import Txn
from spark_jobs.storage.rows import Rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PIECE = "stage"
_BEFORE, _AFTER = "__before", "__after"


def write_range(context: GoldContext, work: WorkItem, rows: RowRange, location: str) -> None:
    """Stage the change of each piece that is not staged yet.

    Raises:
        BaseMovedError: the view was published since, so that the rows would show older inputs.
        InputReplacedError: an input was dropped or recreated.
        QueryFailedError: Spark refuses the query.
    """
    base = base_of(context, work)
    vector = work.vector
    if base.watermark.vector != vector:
        raise BaseMovedError(work.view, f"version {base.version} has other inputs")
    pieces = rows.pieces()
    done = log.transaction_version(location, _PIECE) or 0
    counts = _counted(work.view, location, base.version) if done else {DELETE: 0, INSERT: 0}
    with named_inputs(context, work.view, vector, prefix=prefix_of(work)) as names:
        entry = context.entry(work.view)
        computed = pinned_result(context, entry, vector=vector, clock=work.clock, names=names)
        published = reader.read(context.spark, context.published_at(work.view), base.version)
        for number, piece in list(enumerate(pieces, 1))[done:]:
            latest = latest_publication(context.published_at(work.view))
            if latest is None or latest.version != base.version:
                raise BaseMovedError(work.view, "it was published while it was computed again")
            change = _change(within(published, rows, piece), within(computed, rows, piece))
            failpoint("gold.stage.before_write")
            _write_piece(change, location, number, {"base": base.version, "rows": counts})
            actual = context.store.attempt(work.attempt_id).actual or {}
            progress = {**actual, "pieces": [number, len(pieces)]}
            context.store.update_attempt(work.attempt_id, actual=progress)
            failpoint("gold.stage.piece_written")


def within(frame: DataFrame, rows: RowRange, time: TimeRange) -> DataFrame:
    """The rows whose time column, that of ``rows``, lies in the half-open range ``time``."""
    return frame.where(range_condition(rows, time))


def range_condition(rows: RowRange, time: TimeRange) -> str:
    """The same as a condition in Spark SQL."""
    column = quoted(rows.column)
    # The session's time zone is UTC; a literal with a zone does not cast to all three types.
    start, end = (
        f"CAST(TIMESTAMP '{_literal(at)}' AS {rows.type})" for at in (time.start, time.end)
    )
    return f"{column} >= {start} AND {column} < {end}"


def _literal(at: datetime) -> str:
    """An instant in UTC; unlike with ``strftime``, a year has four digits."""
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")


def _change(published: DataFrame, computed: DataFrame) -> DataFrame:
    """The rows whose number of copies differs, with the numbers before and after."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    names = published.columns
    # Temporary names, because a user's column may have any name.
    own = [f"c{index}" for index in range(len(names))]
    weighed = (
        published.toDF(*own)
        .withColumns({_BEFORE: F.lit(1), _AFTER: F.lit(0)})
        .unionAll(computed.toDF(*own).withColumns({_BEFORE: F.lit(0), _AFTER: F.lit(1)}))
    )
    counted = weighed.groupBy(*own).agg(F.sum(_BEFORE).alias(_BEFORE), F.sum(_AFTER).alias(_AFTER))
    differing = counted.where(F.col(_BEFORE) != F.col(_AFTER))
    return differing.toDF(*names, _BEFORE, _AFTER)


def _write_piece(
    change: DataFrame, location: str, number: int, metadata: dict[str, object]
) -> None:
    """Append the rows to delete, once each, and the rows to insert, with all copies."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    change = change.persist()
    try:
        found = change.agg(
            F.coalesce(F.sum(_BEFORE), F.lit(0)), F.coalesce(F.sum(_AFTER), F.lit(0))
        ).collect()[0]
        counts: dict[str, int] = metadata["rows"]  # type: ignore[assignment]
        counts[DELETE] += int(found[0])
        counts[INSERT] += int(found[1])
        names = [F.col(quoted(name)) for name in change.columns[:-2]]
        deleted = change.where(F.col(_BEFORE) > 0).select(*names, F.lit(DELETE).alias(OPERATION))
        copies = F.explode(F.array_repeat(F.lit(1), F.col(_AFTER).cast("int"))).alias(_AFTER)
        inserted = change.select(*names, F.lit(INSERT).alias(OPERATION), copies).drop(_AFTER)
        txn = Txn(_PIECE, number)
        rows = Rows.of(deleted.unionAll(inserted))
        writer.append(rows, location, txn=txn, metadata=metadata)
    finally:
        change.unpersist()


def _counted(view: str, location: str, base: int) -> dict[str, int]:
    """The counts of staged rows by operation, from the newest piece.

    Raises:
        BaseMovedError: the pieces were compared with another version than ``base``.
    """
    metadata = log.commits(location, limit=1)[0].metadata or {}
    if metadata["base"] != base:
        raise BaseMovedError(view, f"pieces were computed for version {metadata['base']}")
    return {kind: int(metadata["rows"][kind]) for kind in (DELETE, INSERT)}
