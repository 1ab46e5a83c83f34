"""Previews the row changes that a change of SQL causes, before anything is published.

Both definitions are computed over the same input versions with the same clock, so that all
differences come from the change. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from spark_jobs.deploy.difference import gold_difference
from spark_jobs.deploy.reach import reach
from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.base.errors import ViewUnknownError
from spark_jobs.gold.compute.pinned import pinned_result
from spark_jobs.graph.manifest import GoldEntry, Manifest
from spark_jobs.graph.sql import Relation, named_relation
from spark_jobs.names import Layer, TableName
from spark_jobs.planning.vector import VersionVector
from spark_jobs.rollout.row_difference import RowDifference, row_difference
from spark_jobs.storage import log, reader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PREFIX = "tidemark_preview"
_NO_VERSIONS = VersionVector({})


@dataclass(frozen=True, kw_only=True)
class ViewDifference:
    """The difference of one view.

    Attributes:
        why: ``new``, ``changed``, or the upstream view that changed.
        rows: the differing rows; None if they cannot be computed.
        detail: why not.
    """

    view: str
    why: str
    rows: RowDifference | None = None
    detail: str | None = None

    @property
    def same(self) -> bool:
        """Whether the rows are equal."""
        return self.rows is not None and self.rows.same

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object: ``view``, ``why`` and ``detail``.

        If the rows can be computed, also the keys of ``RowDifference.as_dict``.
        """
        return {
            "view": self.view,
            "why": self.why,
            "detail": self.detail,
            **({} if self.rows is None else self.rows.as_dict()),
        }


def changed_views(
    before: Manifest, after: Manifest, asked: Sequence[str] | None = None
) -> dict[str, str]:
    """The views to compare, each after the views that it reads.

    Args:
        before: the running manifest, or the project at another commit.
        after: the project.
        asked: compare these views and their readers; None: all views with changed SQL and their
            readers.

    Returns:
        why each view is compared, by view: ``ViewDifference.why``.

    Raises:
        ViewUnknownError: the project has no such view.
    """
    wanted = [name.removeprefix("gold.") for name in asked or ()]
    for name in wanted:
        if name not in after.gold:
            raise ViewUnknownError(name, sorted(after.gold))
    reasons: dict[str, str] = {}
    for name, entry in after.gold.items():
        if wanted and name not in wanted:
            continue
        was = before.gold.get(name)
        if was is None:
            reasons[name] = "new"
        elif difference := gold_difference(was, entry):
            reasons[name] = "changed"
            if difference.breaking:
                below = reach(after, str(entry.table_name), difference.noticed)
                for reader in below.affected:
                    reasons.setdefault(TableName.parse(reader).name, f"reads gold.{name}")
        elif name in wanted:
            reasons[name] = "unchanged"
    ordered = [entry.name for tier in after.gold_by_tier() for entry in tier]
    return {name: reasons[name] for name in ordered if name in reasons}


@dataclass
class Preview:
    """Computes both versions of the views of a change.

    Attributes:
        context: the project's manifest and locations.
        before: the manifest to compare with.
        clock: the value of CURRENT_TIMESTAMP on both sides.
    """

    context: GoldContext
    before: Manifest
    clock: datetime
    _versions: dict[str, int] = field(default_factory=dict, init=False)
    _frames: list[DataFrame] = field(default_factory=list, init=False)
    _names: set[str] = field(default_factory=set, init=False)
    # Tables that do not exist, by the view that was not computed because of them.
    _lacking: dict[str, set[str]] = field(default_factory=dict, init=False)

    @property
    def versions(self) -> dict[str, int]:
        """The input versions of both sides, by table."""
        return dict(sorted(self._versions.items()))

    def differences(self, views: dict[str, str]) -> Iterator[ViewDifference]:
        """Compare each view of ``changed_views``, in its order."""
        with self._cleaned_up():
            for name, why in views.items():
                yield self._difference(name, why, computed=set(views))

    def _difference(self, name: str, why: str, *, computed: set[str]) -> ViewDifference:
        after = self.context.manifest.gold[name]
        before = self.before.gold.get(name)
        sides = [one for one in (before, after) if one is not None]
        inputs = {TableName.parse(table) for one in sides for table in one.inputs}
        missing = set[str]().union(*(self._missing(table, computed) for table in inputs))
        if missing:
            self._lacking[name] = missing
            detail = f"{', '.join(sorted(missing))} does not exist yet"
            return ViewDifference(view=name, why=why, detail=detail)
        new = self._computed(after, "after", computed)
        old = None if before is None else self._computed(before, "before", computed)
        key = () if after.maintenance is None else after.maintenance.key
        rows = row_difference(old, new, key=key or after.grain, columns=after.columns)
        return ViewDifference(view=name, why=why, rows=rows)

    def _missing(self, table: TableName, computed: set[str]) -> set[str]:
        """The tables because of which an input has no rows to compare."""
        if table.layer is Layer.GOLD and table.name in computed:
            return self._lacking.get(table.name, set())
        exists = log.table_version(self.context.locations.of(table)) is not None
        return set() if exists else {str(table)}

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
        name = f"{_PREFIX}_{table.layer}_{table.name}"
        if name not in self._names:
            location = self.context.locations.of(table)
            found = log.table_version(location)
            version = found.version if found else 0
            self._versions[str(table)] = version
            frame = reader.read(self.context.spark, location, version)
            frame.createOrReplaceTempView(name)
            self._names.add(name)
        return named_relation(name)

    @contextmanager
    def _cleaned_up(self) -> Iterator[None]:
        try:
            yield
        finally:
            for frame in self._frames:
                frame.unpersist()
            for name in self._names:
                self.context.spark.catalog.dropTempView(name)
