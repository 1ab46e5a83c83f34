"""Compares two results of a view by key: rows added, removed and changed, and in which columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from spark_jobs.gold.compute.difference import count_difference, has_incomparable
from spark_jobs.graph.manifest import Column as Declared
from spark_jobs.serving.report.masking import masked
from spark_jobs.storage.columns import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SAMPLES = 10


@dataclass(frozen=True, kw_only=True)
class RowDifference:
    """The row difference of two results.

    Attributes:
        before: row count of the old result.
        after: row count of the new result.
        added: rows with a new key; without a key, rows only in the new result.
        removed: rows with a removed key; without a key, rows only in the old result.
        changed: rows with the same key and other values; None without a key.
        columns: number of differing rows, by common column.
        columns_added: columns only in the new result.
        columns_removed: columns only in the old result.
        key: the columns that identify rows.
        samples: some differing rows: side, key and differing columns.
        detail: what could not be compared.
    """

    before: int
    after: int
    added: int | None
    removed: int | None
    changed: int | None
    columns: Mapping[str, int] = field(default_factory=dict)
    columns_added: tuple[str, ...] = ()
    columns_removed: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    samples: tuple[Mapping[str, Any], ...] = ()
    detail: str | None = None

    @property
    def same(self) -> bool:
        """Whether both results are equal."""
        counts = (self.added, self.removed, self.changed or 0)
        return counts == (0, 0, 0) and not self.columns_added and not self.columns_removed

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object: the attributes, but ``rows_before`` and ``rows_after``."""
        return {
            "rows_before": self.before,
            "rows_after": self.after,
            "added": self.added,
            "removed": self.removed,
            "changed": self.changed,
            "columns": dict(self.columns),
            "columns_added": list(self.columns_added),
            "columns_removed": list(self.columns_removed),
            "key": list(self.key),
            "samples": [dict(one) for one in self.samples],
            "detail": self.detail,
        }


def row_difference(
    old: DataFrame | None, new: DataFrame, *, key: Sequence[str], columns: Sequence[Declared]
) -> RowDifference:
    """Compare two results.

    Args:
        old: the old result; None if there is none.
        new: the new result.
        key: columns that are a unique key of the new result; () if unknown. Where they do not
            identify the rows of both, rows are compared as a whole.
        columns: declared columns of the new result: personal data in samples is masked.
    """
    after = new.count()
    if old is None:
        return RowDifference(
            before=0,
            after=after,
            added=after,
            removed=0,
            changed=None,
            columns_added=tuple(new.columns),
            samples=_some(new, "added", columns),
        )
    common = [name for name in new.columns if name in old.columns]
    shape = RowDifference(
        before=old.count(),
        after=after,
        added=None,
        removed=None,
        changed=None,
        columns_added=tuple(name for name in new.columns if name not in old.columns),
        columns_removed=tuple(name for name in old.columns if name not in new.columns),
    )
    left, right = (one.select(*[quoted(name) for name in common]) for one in (old, new))
    if has_incomparable(left) or has_incomparable(right):
        return replace(shape, detail="a column's values cannot be compared")
    unknown = "no key is known"
    if key and set(key) <= set(common):
        compared = _by_key(left, right, tuple(key), columns, shape=shape)
        if compared is not None:
            return compared
        unknown = f"{', '.join(key)} does not identify the rows of both"
    found = count_difference(left, right)
    return replace(
        shape,
        added=found.unexpected,
        removed=found.missing,
        samples=(
            *_some(right.exceptAll(left), "added", columns),
            *_some(left.exceptAll(right), "removed", columns),
        ),
        detail=f"{unknown}, so a changed row is one removed and one added",
    )


def _by_key(
    left: DataFrame,
    right: DataFrame,
    key: tuple[str, ...],
    columns: Sequence[Declared],
    *,
    shape: RowDifference,
) -> RowDifference | None:
    """Compare by key; None if a key has several rows on one side and some on the other."""
    from pyspark.sql import functions as F  # noqa: N812

    others = [name for name in right.columns if name not in key]
    sides = {
        side: frame.select(
            *[F.col(quoted(name)).alias(f"{side}_k{at}") for at, name in enumerate(key)],
            *[F.col(quoted(name)).alias(f"{side}_c{at}") for at, name in enumerate(others)],
            F.lit(True).alias(f"{side}_there"),  # noqa: FBT003
        )
        for side, frame in (("o", left), ("n", right))
    }
    on = [F.col(f"o_k{at}").eqNullSafe(F.col(f"n_k{at}")) for at in range(len(key))]
    joined = sides["o"].join(sides["n"], on, "full_outer")
    gone, fresh = F.col("n_there").isNull(), F.col("o_there").isNull()
    differs = [
        ~F.col(f"o_c{at}").eqNullSafe(F.col(f"n_c{at}")) & ~gone & ~fresh
        for at in range(len(others))
    ]
    changed = reduce(or_, differs, F.lit(False))  # noqa: FBT003

    def counted(condition: Any, name: str) -> Any:
        return F.coalesce(F.sum(condition.cast("bigint")), F.lit(0)).alias(name)

    row = joined.agg(
        counted(fresh, "added"),
        counted(gone, "removed"),
        counted(changed, "changed"),
        counted(~fresh, "before"),
        counted(~gone, "after"),
        *[counted(one, f"c{at}") for at, one in enumerate(differs)],
    ).collect()[0]
    if (row["before"], row["after"]) != (shape.before, shape.after):
        return None
    by_column = {name: int(row[f"c{at}"]) for at, name in enumerate(others) if row[f"c{at}"]}
    samples: list[Mapping[str, Any]] = []
    if row["added"] or row["removed"] or row["changed"]:
        order = [F.coalesce(F.col(f"n_k{at}"), F.col(f"o_k{at}")) for at in range(len(key))]
        some = joined.where(fresh | gone | changed).orderBy(*order).limit(SAMPLES).collect()
        samples = [_sample(one, key, others, columns) for one in some]
    return replace(
        shape,
        added=int(row["added"]),
        removed=int(row["removed"]),
        changed=int(row["changed"]),
        columns=by_column,
        key=key,
        samples=tuple(samples),
    )


def _sample(
    row: Any, key: Sequence[str], others: Sequence[str], columns: Sequence[Declared]
) -> dict[str, Any]:
    side = "added" if row["o_there"] is None else "removed" if row["n_there"] is None else "changed"
    prefix = "o" if side == "removed" else "n"
    shown = {name: row[f"{prefix}_k{at}"] for at, name in enumerate(key)}
    shown |= {name: row[f"{prefix}_c{at}"] for at, name in enumerate(others)}
    found: dict[str, Any] = {"": side, **_plain(masked(shown, columns))}
    if side == "changed":
        was = {name: row[f"o_c{at}"] for at, name in enumerate(others)}
        hidden = _plain(masked(was, columns))
        differing = [
            name for at, name in enumerate(others) if not _same(row[f"o_c{at}"], row[f"n_c{at}"])
        ]
        found = {
            "": side,
            **{name: found[name] for name in key},
            **{name: f"{hidden[name]} → {found[name]}" for name in differing},
        }
    return found


def _same(one: object, other: object) -> bool:
    # NaN equals NaN in Spark, also within a value.
    return one == other or repr(one) == repr(other)


def _some(frame: DataFrame, side: str, columns: Sequence[Declared]) -> tuple[dict[str, Any], ...]:
    rows = frame.limit(SAMPLES).collect()
    return tuple({"": side, **_plain(masked(row.asDict(), columns))} for row in rows)


def _plain(row: Mapping[str, Any]) -> dict[str, str | None]:
    return {name: None if value is None else str(value) for name, value in row.items()}
