"""Previews the row changes that a change of SQL causes, before anything is published.

Both definitions are computed over the same input versions with the same clock, so that all
differences come from the change. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from spark_jobs.deploy.difference import changed_silver, gold_difference
from spark_jobs.deploy.reach import Noticed, reach
from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.base.errors import ViewUnknownError
from spark_jobs.gold.compute.pinned import pinned_result
from spark_jobs.graph.columns_read import read_of_tables
from spark_jobs.graph.manifest import Column, GoldEntry, Manifest, SilverEntry
from spark_jobs.graph.sql import Relation, named_relation
from spark_jobs.names import Layer, TableName
from spark_jobs.planning.vector import VersionVector
from spark_jobs.rollout.row_difference import RowDifference, row_difference
from spark_jobs.silver.repair.declared import DeclaredTable
from spark_jobs.storage import log, reader
from spark_jobs.storage.columns import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PREFIX = "tidemark_preview"
_NO_VERSIONS = VersionVector({})

_Declared = GoldEntry | SilverEntry


@dataclass(frozen=True, kw_only=True)
class TablePreview:
    """The difference of one table.

    Attributes:
        table: its name in SQL.
        why: ``new``, ``changed``, ``unchanged``, or the upstream table that changed.
        rows: the differing rows; None if they cannot be computed.
        detail: why not.
    """

    table: str
    why: str
    rows: RowDifference | None = None
    detail: str | None = None

    @property
    def same(self) -> bool:
        """Whether the rows are equal."""
        return self.rows is not None and self.rows.same

    @property
    def noticed(self) -> Noticed:
        """The columns that readers may find changed; None: the rows differ."""
        rows = self.rows
        if rows is None or rows.changed is None or rows.added or rows.removed:
            return None
        return frozenset(name.lower() for name in (*rows.columns, *rows.columns_removed))

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object: ``table``, ``why`` and ``detail``, and for a view also ``view``.

        If the rows can be computed, also the keys of ``RowDifference.as_dict``.
        """
        table = TableName.parse(self.table)
        return {
            "table": self.table,
            **({"view": table.name} if table.layer is Layer.GOLD else {}),
            "why": self.why,
            "detail": self.detail,
            **({} if self.rows is None else self.rows.as_dict()),
        }


def changed_views(
    before: Manifest,
    after: Manifest,
    asked: Sequence[str] | None = None,
    *,
    moved: Mapping[str, Noticed] | None = None,
) -> dict[str, str]:
    """The views to compare, each after the views that it reads.

    Args:
        before: the running manifest, or the project at another commit.
        after: the project.
        asked: compare these views and their readers; None: all views with changed SQL and their
            readers.
        moved: silver tables whose rows would differ, with their ``TablePreview.noticed``; their
            readers are compared too.

    Returns:
        why each view is compared, by view: ``TablePreview.why``.

    Raises:
        ViewUnknownError: the project has no such view.
    """
    wanted = _known(after, asked or ())
    reasons: dict[str, str] = {}
    for table, noticed in (moved or {}).items():
        for name in _readers(after, table, noticed):
            reasons.setdefault(name, f"reads {table}")
    chosen = after.gold if asked is None else {*wanted, *reasons}
    for name, entry in after.gold.items():
        if name not in chosen:
            continue
        was = before.gold.get(name)
        if was is None:
            reasons[name] = "new"
        elif difference := gold_difference(was, entry):
            reasons[name] = "changed"
            if difference.breaking:
                for one in _readers(after, str(entry.table_name), difference.noticed):
                    reasons.setdefault(one, f"reads gold.{name}")
        elif name in wanted:
            reasons.setdefault(name, "unchanged")
    ordered = [entry.name for tier in after.gold_by_tier() for entry in tier]
    return {name: reasons[name] for name in ordered if name in reasons}


def _known(after: Manifest, asked: Sequence[str]) -> list[str]:
    names = [name.removeprefix("gold.") for name in asked]
    for name in names:
        if name not in after.gold:
            raise ViewUnknownError(name, sorted(after.gold))
    return names


def _readers(after: Manifest, table: str, noticed: Noticed) -> list[str]:
    return [TableName.parse(one).name for one in reach(after, table, noticed).affected]


@dataclass
class Preview:
    """Computes both versions of the views of a change.

    Attributes:
        context: the project's manifest and locations.
        before: the manifest to compare with.
        clock: the value of CURRENT_TIMESTAMP on both sides.
        declared: silver tables as the project makes them, by their name in SQL; None: there are no
            records for it.
    """

    context: GoldContext
    before: Manifest
    clock: datetime
    declared: Mapping[str, DeclaredTable | None] = field(default_factory=dict)
    _versions: dict[str, int] = field(default_factory=dict, init=False)
    _frames: list[DataFrame] = field(default_factory=list, init=False)
    _names: set[str] = field(default_factory=set, init=False)
    # Why views were not computed: what does not exist yet.
    _lacking: dict[str, set[str]] = field(default_factory=dict, init=False)

    @property
    def versions(self) -> dict[str, int]:
        """The input versions of both sides, by table."""
        return dict(sorted(self._versions.items()))

    def tables(self) -> Iterator[TablePreview]:
        """Compare each silver table with the one that the project makes of its records."""
        changed = changed_silver(self.before, self.context.manifest)
        for name, declared in self.declared.items():
            table = TableName.parse(name)
            after = self.context.manifest.silver[table.name]
            before = self.before.silver.get(table.name)
            why = "new" if before is None else "unchanged"
            why = "changed" if table.name in changed else why
            if declared is None:
                detail = f"bronze.{after.source} does not exist yet"
                yield TablePreview(table=name, why=why, detail=detail)
                continue
            new = self._columns(declared.location, None, after)
            old = None
            if before is not None and declared.live is not None:
                old = self._columns(self.context.locations.of(table), declared.live, before)
                self._versions[name] = declared.live
            columns = _marked(after, before)
            rows = row_difference(old, new, key=after.row_key, columns=columns)
            yield TablePreview(table=name, why=why, rows=rows)

    def _columns(self, location: str, version: int | None, entry: SilverEntry) -> DataFrame:
        """The declared columns of a silver table that are there, without the technical ones."""
        frame = reader.read(self.context.spark, location, version)
        names = {column.name.lower() for column in entry.columns}
        return frame.select(*[quoted(name) for name in frame.columns if name.lower() in names])

    def differences(self, views: dict[str, str]) -> Iterator[TablePreview]:
        """Compare each view of ``changed_views``, in its order."""
        with self._cleaned_up():
            for name, why in views.items():
                yield self._difference(name, why, computed=set(views))

    def _difference(self, name: str, why: str, *, computed: set[str]) -> TablePreview:
        after = self.context.manifest.gold[name]
        table = str(after.table_name)
        before = self.before.gold.get(name)
        sides = [one for one in (before, after) if one is not None]
        inputs = {TableName.parse(table) for one in sides for table in one.inputs}
        missing = set[str]().union(*(self._missing(table, computed) for table in inputs))
        if lacking := missing or self._absent(after):
            self._lacking[name] = lacking
            return TablePreview(table=table, why=why, detail=", ".join(sorted(lacking)))
        new = self._computed(after, "after", computed)
        old = None if before is None else self._computed(before, "before", computed)
        key = () if after.maintenance is None else after.maintenance.key
        rows = row_difference(old, new, key=key or after.grain, columns=_marked(after, before))
        return TablePreview(table=table, why=why, rows=rows)

    def _missing(self, table: TableName, computed: set[str]) -> set[str]:
        """Why an input has no rows to compare."""
        if table.layer is Layer.GOLD and table.name in computed:
            return self._lacking.get(table.name, set())
        if self.declared.get(str(table)) is not None:
            return set()
        exists = log.table_version(self.context.locations.of(table)) is not None
        return set() if exists else {f"{table} does not exist yet"}

    def _absent(self, entry: GoldEntry) -> set[str]:
        """What a view reads of silver tables that were not compared and have no such column yet."""
        found = set()
        for table, read in read_of_tables(entry.query).items():
            name = TableName.parse(table)
            if name.layer is not Layer.SILVER or self.declared.get(table):
                continue
            there = {column.name.lower() for column in log.schema(self.context.locations.of(name))}
            columns = self.context.manifest.silver[name.name].columns
            names = [column.name for column in columns if column.name.lower() not in there]
            found |= {
                f"{table} has no column {one} yet: `tidemark diff {table}` computes it"
                for one in names
                if read is None or one.lower() in read
            }
        return found

    def _computed(self, entry: GoldEntry, side: str, computed: set[str]) -> DataFrame:
        names = {
            table: self._relation(TableName.parse(table), side, computed) for table in entry.inputs
        }
        frame = pinned_result(
            self.context, entry, vector=_NO_VERSIONS, clock=self.clock, names=names
        ).cache()
        self._frames.append(frame)
        name = f"{_PREFIX}_{side}_{entry.name}"
        frame.createOrReplaceTempView(name)
        self._names.add(name)
        return frame

    def _relation(self, table: TableName, side: str, computed: set[str]) -> Relation:
        if table.layer is Layer.GOLD and table.name in computed:
            name = f"{_PREFIX}_{side}_{table.name}"
            if name in self._names:
                return named_relation(name)
        declared = self.declared.get(str(table))
        built = declared.location if declared is not None and side == "after" else None
        name = f"{_PREFIX}_{'built' if built else table.layer}_{table.name}"
        if name not in self._names:
            location = built or self.context.locations.of(table)
            version = None if built else self._version(table, declared)
            frame = reader.read(self.context.spark, location, version)
            frame.createOrReplaceTempView(name)
            self._names.add(name)
        return named_relation(name)

    def _version(self, table: TableName, declared: DeclaredTable | None) -> int:
        """The version that all views read."""
        if declared is not None and declared.live is not None:
            version = declared.live
        else:
            found = log.table_version(self.context.locations.of(table))
            version = found.version if found else 0
        self._versions[str(table)] = version
        return version

    @contextmanager
    def _cleaned_up(self) -> Iterator[None]:
        try:
            yield
        finally:
            for frame in self._frames:
                frame.unpersist()
            for name in self._names:
                self.context.spark.catalog.dropTempView(name)


def _marked(after: _Declared, before: _Declared | None) -> list[Column]:
    """The columns of the new declaration, and those that hold personal data by the old one."""
    held = () if before is None else before.columns
    return [*after.columns, *(column for column in held if column.pii)]
