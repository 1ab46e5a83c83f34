"""The relations that an incremental program reads, at the versions of one refresh."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.base.publications import Publication
from spark_jobs.gold.compute.state_location import AggregateState, aggregate_state
from spark_jobs.graph.maintenance.relation import When
from spark_jobs.graph.maintenance.states import is_state
from spark_jobs.graph.sql import Relation, delta_relation, named_relation
from spark_jobs.names import TableName, TableVersion
from spark_jobs.planning.work import WorkItem
from spark_jobs.storage import log, policy
from spark_jobs.storage.history import rows_changed

# Prefix of all names in a program.
PREFIX = "__refresh"


@dataclass(frozen=True)
class Range:
    """The versions of one input before and after a refresh."""

    before: TableVersion
    after: TableVersion


@dataclass
class Relations:
    """Resolves the table names of a program to relations; see ``graph.maintenance``.

    Attributes:
        base: the publication that the change is applied to.
        ranges: version ranges of the inputs, by ``layer.name``.
        by_name: whether tables are read through names registered with the engine. Spark then
            resolves a table version once, and not in every statement.
        contents: location and version of each table that is read by name.
    """

    context: GoldContext
    view: str
    base: Publication
    ranges: dict[str, Range]
    by_name: bool = False
    contents: dict[str, tuple[str, int]] = field(default_factory=dict)
    _groups: dict[str, AggregateState] = field(default_factory=dict)

    @property
    def changed(self) -> frozenset[str]:
        """The tables whose version differs before and after."""
        return frozenset(
            name for name, one in self.ranges.items() if one.before.version != one.after.version
        )

    def content(self, table: str, when: When) -> Relation:
        """A table at its version before or after; aggregate state is read by registered name."""
        if is_state(table):
            return named_relation(f"{self._name(table)}_{when}")
        one = self.ranges[table]
        version = one.before if when is When.OLD and table in self.changed else one.after
        return self._content(f"{self._name(table)}_{when}", self.location(table), version.version)

    def change(self, table: str) -> Relation:
        """The name of a table's change feed."""
        # Without the suffix, that of a table ``t_old`` would be the old content of a table ``t``.
        return named_relation(f"{self._name(table)}_change")

    def groups(self, name: str) -> AggregateState:
        """The aggregate state called ``state.N``, looked up once."""
        if name not in self._groups:
            self._groups[name] = aggregate_state(self.context, self.base, view=self.view, name=name)
        return self._groups[name]

    def large(self, table: str) -> bool:
        """Whether a table is too large for a broadcast join."""
        if is_state(table):
            groups = self.groups(table)
            return groups.known is not None and not policy.STATE.fits(rows=groups.rows)
        size = log.size(self.location(table), self.ranges[table].after.version)
        return not policy.COPIED.fits(size=size.bytes)

    def part_types(self, table: str) -> dict[str, str] | None:
        """Column types of aggregate state that is stored in parts; None for any other table."""
        groups = self.groups(table) if is_state(table) else None
        if groups is None or groups.known is None or not groups.in_parts:
            return None
        return {one.name: one.type for one in log.schema(groups.location, groups.known.version)}

    def published(self) -> Relation:
        """The view's own table before the refresh."""
        location = self.context.published_at(self.view)
        return self._content(f"{PREFIX}_published", location, self.base.version)

    def types(self) -> dict[str, dict[str, str]]:
        """The column types of the inputs after the change, by table and lower-case column name."""
        return {
            table: {
                one.name.lower(): one.type
                for one in log.schema(self.location(table), range_.after.version)
            }
            for table, range_ in self.ranges.items()
        }

    def _content(self, name: str, location: str, version: int) -> Relation:
        if not self.by_name:
            return delta_relation(location, version)
        self.contents[name] = (location, version)
        return named_relation(name)

    def _name(self, table: str) -> str:
        return f"{PREFIX}_{table.replace('.', '_')}"

    def location(self, table: str) -> str:
        """The table's location."""
        return self.context.locations.of(TableName.parse(table))


def prefix_of(work: WorkItem) -> str:
    """The prefix of an attempt's relation names: several attempts may share a session."""
    return "__" + "".join(one if one.isalnum() else "_" for one in work.attempt_id)


def ranges_of(
    context: GoldContext, base: Publication, vector: Iterable[tuple[TableName, TableVersion]]
) -> dict[str, Range] | None:
    """The version range of each input since a publication, by ``layer.name``.

    If no commit since changed rows, the range is empty, at the later version: the files of the
    earlier one may be gone after a compaction.

    Returns:
        None if the publication lacks one of the inputs.
    """
    found = {}
    for table, after in vector:
        before = base.watermark.vector.get(table)
        if before is None:
            return None
        location, old = context.locations.of(table), before.version
        same = old < after.version and not rows_changed(location, after=old, upto=after.version)
        found[str(table)] = Range(after if same else before, after)
    return found
