"""How a table's definition differs from the one before: rows, columns, or only its words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from spark_jobs.graph.manifest import SOURCE_RELATION, Column, GoldEntry, Parts, SilverEntry
from spark_jobs.graph.parts import parts_of


@dataclass(frozen=True)
class Difference:
    """What a reader of a table may notice.

    Attributes:
        rows: whether other rows may be there; every column then counts as changed.
        changed: columns that mean something else, or are of another type, in lower case.
        added: columns that are new, as declared.
        removed: columns that are gone, as they were declared.
    """

    rows: bool = False
    changed: frozenset[str] = frozenset()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.rows or bool(self.changed or self.added or self.removed)

    @property
    def breaking(self) -> bool:
        """Whether a reader may notice that reads nothing new."""
        return self.rows or bool(self.changed or self.removed)

    @property
    def noticed(self) -> frozenset[str] | None:
        """The columns whose readers notice, in lower case; None: all of them."""
        return None if self.rows else self.changed | {name.lower() for name in self.removed}

    @property
    def words(self) -> tuple[str, ...]:
        """What differs, one line each."""
        named = {
            "columns changed": sorted(self.changed),
            "columns added": self.added,
            "columns removed": self.removed,
        }
        lines = [f"{what}: {', '.join(names)}" for what, names in named.items() if names]
        return ("its rows may differ", *lines) if self.rows else tuple(lines)


NO_DIFFERENCE = Difference()


def columns_of(
    before: tuple[Column, ...],
    after: tuple[Column, ...],
    *,
    parts_before: Parts | None,
    parts_after: Parts | None,
) -> Difference:
    """Compare two definitions by their columns and by the digests of their parts.

    Without digests of both, or where the rest of the SQL differs, rows may differ.
    """
    was = {one.name.lower(): one for one in before}
    now = {one.name.lower(): one for one in after}
    retyped = {name for name in was.keys() & now.keys() if was[name].type != now[name].type}
    rows, meaning = True, set[str]()
    if parts_before is not None and parts_after is not None:
        rows = parts_before.rows != parts_after.rows
        old = {name.lower(): digest for name, digest in parts_before.columns.items()}
        new = {name.lower(): digest for name, digest in parts_after.columns.items()}
        meaning = {name for name in old.keys() & new.keys() if old[name] != new[name]}
    return Difference(
        rows=rows,
        changed=frozenset(retyped | meaning),
        added=tuple(one.name for name, one in now.items() if name not in was),
        removed=tuple(one.name for name, one in was.items() if name not in now),
    )


def silver_difference(
    before: SilverEntry,
    after: SilverEntry,
    *,
    types_before: Mapping[str, str],
    types_after: Mapping[str, str],
) -> Difference:
    """How the rows that a silver table takes up from now on differ.

    Args:
        before: the declaration that runs.
        after: the declaration that is to run.
        types_before: of the source's columns, by name.
        types_after: the same, as declared now.
    """
    handled = (
        "source",
        "event_id",
        "apply_as_deletes",
        "sequence_by",
        "keys",
        "apply",
        "expiry",
    )
    other_rows = any(getattr(before, name) != getattr(after, name) for name in handled)
    found = columns_of(
        before.columns,
        after.columns,
        parts_before=_projected(before, types_before),
        parts_after=_projected(after, types_after),
    )
    if not other_rows:
        return found
    return replace(found, rows=True)


def gold_difference(before: GoldEntry, after: GoldEntry) -> Difference:
    """How a view's content differs; nothing where only words about it do."""
    if before.fingerprint == after.fingerprint and before.inputs == after.inputs:
        # Types that only Spark can tell are told later, and are no change.
        return NO_DIFFERENCE
    return columns_of(
        before.columns, after.columns, parts_before=before.parts, parts_after=after.parts
    )


def _projected(entry: SilverEntry, types: Mapping[str, str]) -> Parts | None:
    return parts_of(entry.projection, {SOURCE_RELATION: types})
