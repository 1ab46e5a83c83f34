"""The engine on Spark, in a session that other refreshes may share."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING
from uuid import uuid4

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.compute.columns import with_columns
from spark_jobs.gold.compute.difference import has_incomparable, multiset_difference, same_columns
from spark_jobs.gold.compute.difference_here import change_between, small_tables
from spark_jobs.gold.compute.pinned import pinned_result
from spark_jobs.gold.compute.protocol import SPARK, Prepared
from spark_jobs.gold.engine.multisets import net_of, of_keyed, without_key
from spark_jobs.gold.engine.step_values import StepValues
from spark_jobs.graph.dialect import to_sql
from spark_jobs.graph.duck.staged import INSERT, OPERATION
from spark_jobs.graph.last_step import DeleteInsert, MergeByKey, RowStep
from spark_jobs.graph.maintenance.relation import WEIGHT
from spark_jobs.graph.runtime_filters import Needed, needed_values, with_runtime_filters
from spark_jobs.graph.sql import Query, named_relation, relations_read, with_prefix
from spark_jobs.planning.plan import RefreshPlan
from spark_jobs.planning.work import WorkItem
from spark_jobs.storage import log, policy, reader
from spark_jobs.storage.columns import quoted, same_row, with_types_of
from spark_jobs.storage.delta import CAME, CHANGE_TYPE
from spark_jobs.storage.policy import Place
from spark_jobs.storage.rows import RowChange, Rows, from_arrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SparkEngine(AbstractContextManager["SparkEngine"]):
    """Computes in the session of a context; its rows are DataFrames.

    Its names are temporary views with a prefix of this engine. Closing it drops them and unpersists
    its DataFrames.
    """

    name = SPARK

    def __init__(self, context: GoldContext, changed: int | None, *, net: bool = False) -> None:
        """Open the engine.

        Args:
            context: settings, manifest and locations of the project.
            changed: number of changed input rows; None if unknown, or if all rows are read.
            net: whether rows that came and left again are removed from changes.
        """
        self._context = context
        self._net = net
        self._place = policy.CHANGE.place(rows=changed)
        self._prefix = f"__{uuid4().hex[:12]}_"
        self._frames: dict[str, DataFrame] = {}
        # Where tables are; they are registered once a query reads them.
        self._tables: dict[str, tuple[str, int]] = {}
        self._parts: dict[tuple[str, tuple[str, ...]], str] = {}
        self._persisted: list[DataFrame] = []
        self._steps = StepValues()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Before the views are dropped: over Spark Connect, unpersist resolves the names in the
        # plan.
        for frame in self._persisted:
            frame.unpersist()
        for name in self._frames:
            self._context.spark.catalog.dropTempView(self._prefix + name)

    def table(self, name: str, location: str, version: int) -> None:
        self._tables[name] = location, version
        few = self._place is Place.LOCAL
        if few and not policy.COPIED.fits(size=log.size(location, version).bytes):
            self._steps.add_table(
                name, lambda: log.files(log.existing_table(location, version=version))
            )

    def changes(self, name: str, location: str, *, after: int, upto: int) -> None:
        # Open the session before importing functions: they check which kind of session is active.
        rows = reader.changes(self._context.spark, location, after=after, upto=upto)
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        if self._place is Place.LOCAL:
            # In one task, the sums over a few changed rows need no shuffle.
            rows = rows.coalesce(1)
        came = F.col(CHANGE_TYPE).isin(*CAME)
        weighed = rows.withColumn(WEIGHT, F.when(came, 1).otherwise(-1))
        if self._net:
            weighed = net_of(weighed, [one.name for one in log.schema(location, upto)])
        self._register(weighed, name)

    def computed(self, name: str, query: Query, *, large: bool = False) -> Prepared[None]:
        def run() -> None:
            frame = self._query(query)
            self._register(self._persist(frame) if large else self._once(frame, name), name)

        return run

    def same(self, name: str, other: str) -> Prepared[None]:
        return lambda: self._register(self._frame(other), name)

    def typed(self, query: Query, *, like: str) -> Prepared[Rows]:
        # The sum of two decimals has a wider type.
        return lambda: self._rows(with_types_of(self._query(query), self._frame(like)))

    def change(
        self, query: Query | None, *, view: str, published: str, step: RowStep
    ) -> Prepared[Rows]:
        def run() -> Rows:
            from pyspark.sql import functions as F  # noqa: N812, PLC0415

            held = self._frame(published)
            if query is None:
                return self._rows(held.limit(0).withColumn(OPERATION, F.lit(INSERT)))
            # The type of a sum may be wider than the published column.
            like = held.withColumn(WEIGHT, F.lit(1).cast("long"))
            change = with_types_of(self._query(query), like)
            match step:
                case MergeByKey():
                    return self._rows(of_keyed(change, view))
                case DeleteInsert():
                    return self._rows(without_key(self._once(change), held, view))

        return run

    def whole(
        self, work: RefreshPlan | WorkItem, columns: Collection[str] | None = None
    ) -> Prepared[Rows]:
        def run() -> Rows:
            names = {}
            for table, version in work.vector:
                name = f"{table.layer}_{table.name}"
                self._tables[name] = self._context.locations.of(table), version.version
                self._read(name)
                names[str(table)] = named_relation(self._prefix + name)
            frame = pinned_result(
                self._context,
                self._context.entry(work.view),
                vector=work.vector,
                clock=work.clock,
                names=names,
            )
            if columns is not None:
                frame = with_columns(self._context, work, frame, columns)
            return Rows.of(frame, place=self._expected(work.view))

        return run

    def difference(self, view: str, *, staged: str, published: str) -> RowChange | None:
        del view
        if (small := small_tables(staged, published)) is not None:
            kinds = {one.name: one.type for one in log.schema(staged)}
            return change_between(*small, kinds, lambda: self._context.spark)
        spark = self._context.spark
        after, before = reader.read(spark, staged), reader.read(spark, published)
        size = log.size(staged)
        comparable = same_columns(after, before) and not has_incomparable(after)
        if not comparable or not policy.COMPARED.fits(size=size.bytes):
            return None
        differing = self._persist(multiset_difference(before, after))
        count = differing.count()
        if count > policy.most_merged(size.rows or 0):
            return None
        # Every row that differs is deleted, and inserted as often as it is staged.
        which = differing.select(*map(quoted, after.columns))
        same = same_row("s", "d", after.columns)
        inserted = after.alias("s").join(which.alias("d"), same, "left_semi")
        return RowChange(
            deleted=Rows.of(which),
            inserted=Rows.of(inserted),
            deletes=count,
            inserts=count,
            kinds=dict(after.dtypes),
            step=DeleteInsert(),
        )

    def _query(self, query: Query) -> DataFrame:
        narrow = with_runtime_filters(query, self._steps)
        for name, needed in needed_values(query, self._steps).items():
            if part := self._part(name, needed):
                narrow = with_prefix(narrow, [name], self._prefix + part)
        for name in sorted(relations_read(narrow)):
            self._read(name)
        return self._context.spark.sql(to_sql(with_prefix(narrow, self._frames, self._prefix)))

    def _part(self, name: str, needed: Needed) -> str | None:
        """Register the files of a table that a query needs.

        Returns:
            the prefix of their name; None if the whole table is read.
        """
        files = self._steps.files(name, needed)
        if files is None:
            return None
        key = name, tuple(files.column("path").to_pylist())
        if key not in self._parts:
            frame = reader.read_files(self._context.spark, *self._tables[name], files)
            if frame is None:
                return None
            self._parts[key] = f"part{len(self._parts)}_"
            self._register(frame, self._parts[key] + name)
        return self._parts[key]

    def _read(self, name: str) -> None:
        """Register a whole table, unless that was done or it is none."""
        if name in self._tables and name not in self._frames:
            self._register(reader.read(self._context.spark, *self._tables[name]), name)

    def _frame(self, name: str) -> DataFrame:
        self._read(name)
        return self._frames[name]

    def _rows(self, frame: DataFrame) -> Rows:
        return Rows.of(frame, place=self._place)

    def _once(self, frame: DataFrame, name: str | None = None) -> DataFrame:
        """The same rows, computed once however often they are read; a step has a name."""
        few = self._rows(frame).few
        if few is not None:
            if name is not None:
                self._steps.add(name, few, dict(frame.dtypes))
            return from_arrow(frame.sparkSession, few, lambda: frame.schema)
        # Not persist: it keeps the plan, and plans would grow with each step.
        return frame.localCheckpoint()

    def _persist(self, frame: DataFrame) -> DataFrame:
        found = frame.persist()
        self._persisted.append(found)
        return found

    def _register(self, frame: DataFrame, name: str) -> None:
        frame.createOrReplaceTempView(self._prefix + name)
        self._frames[name] = frame

    def _expected(self, view: str) -> Place:
        """Where the result is written if it has about as many rows as the published table."""
        location = self._context.published_at(view)
        if log.table_version(location) is None:
            return Place.SPARK
        return policy.EXPECTED_RESULT.place(rows=log.size(location).rows or None)
