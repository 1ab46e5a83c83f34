"""The difference between two definitions of a table: rows, columns, or only metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from spark_jobs.graph.manifest import (
    SOURCE_RELATION,
    Column,
    GoldEntry,
    Manifest,
    Parts,
    SilverEntry,
)
from spark_jobs.graph.parts import parts_of


@dataclass(frozen=True)
class Difference:
    """What readers of a table may notice.

    Attributes:
        rows: whether rows may differ; then all columns count as changed.
        changed: columns with another meaning or type, in lower case.
        added: new columns, as declared.
        removed: removed columns, as they were declared.
    """

    rows: bool = False
    changed: frozenset[str] = frozenset()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.rows or bool(self.changed or self.added or self.removed)

    @property
    def breaking(self) -> bool:
        """Whether existing readers may be affected."""
        return self.rows or bool(self.changed or self.removed)

    @property
    def noticed(self) -> frozenset[str] | None:
        """The columns whose readers are affected, in lower case; None: all."""
        return None if self.rows else self.changed | {name.lower() for name in self.removed}

    @property
    def words(self) -> tuple[str, ...]:
        """The differences as text, one line each."""
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
    """Compare two definitions by their columns and the digests of their parts.

    Without both digests, or if the rest of the SQL differs, rows may differ.
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


def silver_difference(before: Manifest, after: Manifest, name: str) -> Difference:
    """The difference in rows that a silver table will write from now on.

    Args:
        before: the running manifest.
        after: the project.
        name: of a silver table of both.
    """
    was, now = before.silver[name], after.silver[name]
    handled = (
        "source",
        "event_id",
        "apply_as_deletes",
        "sequence_by",
        "keys",
        "apply",
        "expiry",
    )
    other_rows = any(getattr(was, one) != getattr(now, one) for one in handled)
    found = columns_of(
        was.columns,
        now.columns,
        parts_before=_projected(was, _types(before, was)),
        parts_after=_projected(now, _types(after, now)),
    )
    if not other_rows:
        return found
    return replace(found, rows=True)


def changed_silver(before: Manifest, after: Manifest) -> frozenset[str]:
    """Silver tables of both manifests that write other rows or columns from now on."""
    both = before.silver.keys() & after.silver.keys()
    return frozenset(name for name in both if silver_difference(before, after, name))


def _types(manifest: Manifest, entry: SilverEntry) -> dict[str, str]:
    return {column.name: column.type for column in manifest.sources[entry.source].columns}


def gold_difference(before: GoldEntry, after: GoldEntry) -> Difference:
    """The difference of a view's content; empty if only metadata differs."""
    if before.fingerprint == after.fingerprint and before.inputs == after.inputs:
        # Types that only Spark knows are filled in later, which is not a change.
        return NO_DIFFERENCE
    if before.partition_by != after.partition_by and _result(before) == _result(after):
        return NO_DIFFERENCE
    return columns_of(
        before.columns, after.columns, parts_before=before.parts, parts_after=after.parts
    )


def _result(entry: GoldEntry) -> object:
    """What decides the rows and columns of a view, if its inputs are declared as before."""
    parts = None if entry.parts is None else entry.parts.columns
    return entry.query, entry.inputs, parts, [(one.name, one.type) for one in entry.columns]


def _projected(entry: SilverEntry, types: Mapping[str, str]) -> Parts | None:
    return parts_of(entry.projection, {SOURCE_RELATION: types})
