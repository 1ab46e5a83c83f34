"""Restricts relations to some values of columns, pushed down as far as possible."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from spark_jobs.graph.maintenance.algebra import LeftJoin, conjuncts, equality, used
from spark_jobs.graph.maintenance.clauses import aliased, selected
from spark_jobs.graph.maintenance.scope import named


@dataclass(frozen=True)
class Keys:
    """Values of some columns, in a relation.

    Attributes:
        relation: name of the relation.
        pairs: an expression over restricted columns, and the relation's column.
    """

    relation: str
    pairs: tuple[tuple[exp.Expr, str], ...]

    def are_in(self, keys: Keys) -> bool:
        """Whether restricting by other keys is as strict as by all of these together."""
        return {key for _, key in self.pairs} <= {key for _, key in keys.pairs}

    def columns(self) -> dict[str, str]:
        """The restricted expressions that are plain columns: the key by the column's name."""
        return {one.name: key for one, key in self.pairs if isinstance(one, exp.Column)}


def restricted(query: exp.Select, columns: Sequence[str], keys: Keys | None) -> exp.Select:
    """The rows of a query whose values are among the keys; NULL equals NULL."""
    if keys is None or not keys.pairs:
        return query
    condition = exp.and_(
        *(
            exp.NullSafeEQ(
                this=_of_rows(one),
                expression=exp.column(key, table="__k"),
            )
            for one, key in keys.pairs
        )
    )
    outputs = [exp.column(name, table="__t") for name in columns] or selected(())
    return (
        exp.select(*outputs)
        .from_(aliased(query, "__t"), copy=False)
        .join(
            exp.to_table(keys.relation).as_("__k"), on=condition, join_type="left semi", copy=False
        )
    )


def _of_rows(key: exp.Expr) -> exp.Expr:
    """A key over the restricted rows, whose columns may have names of the keys' relation."""
    holder = exp.Paren(this=key.copy())
    for column in list(holder.find_all(exp.Column)):
        column.replace(exp.column(column.name, table="__t"))
    return holder.this if isinstance(key, exp.Column) else holder


def split(keys: Keys | None, columns: Sequence[str]) -> tuple[Keys | None, Keys | None]:
    """The keys that only read these columns, and the rest."""
    if keys is None:
        return None, None
    inside = tuple(pair for pair in keys.pairs if used(pair[0]) <= set(columns))
    outside = tuple(pair for pair in keys.pairs if pair not in inside)
    return Keys(keys.relation, inside), (keys if outside else None)


def plain(keys: Keys) -> Keys:
    """The keys that are columns."""
    pairs = tuple(pair for pair in keys.pairs if isinstance(pair[0], exp.Column))
    return Keys(keys.relation, pairs)


def spread(keys: Keys, conditions: Iterable[exp.Expr]) -> dict[str, str]:
    """The restricted columns, and those that the conditions equate with them.

    Returns:
        the key by the column's name.

    >>> from spark_jobs.graph.dialect import parse
    >>> spread(Keys("changed", ((named("a"), "k0"),)), [parse("c = b"), parse("a = b")])
    {'a': 'k0', 'b': 'k0', 'c': 'k0'}
    """
    reach = keys.columns()
    pairs = [pair for one in conditions if (pair := equality(one))]
    grown = True
    while grown:
        grown = False
        for left, right in pairs:
            for one, other in ((left, right), (right, left)):
                if one in reach and other not in reach:
                    reach[other] = reach[one]
                    grown = True
    return reach


def reaching(keys: Keys, conditions: Iterable[exp.Expr], columns: Sequence[str]) -> Keys:
    """The keys of an input of a join with these columns, given those of its other inputs."""
    reach = spread(keys, conditions)
    pairs = tuple((named(one), key) for one, key in reach.items() if one in columns)
    return Keys(keys.relation, pairs)


def right_keys(node: LeftJoin, keys: Keys | None) -> Keys | None:
    """The keys of the right side of a join, given those of the left side."""
    if keys is None:
        return None
    return reaching(keys, conjuncts(node.condition), node.right.columns)


def rename(keys: Keys | None, names: Mapping[str, str]) -> Keys | None:
    """The keys with renamed columns.

    Args:
        keys: None: no keys, which stays None.
        names: new names of all columns, by old name.
    """
    if keys is None:
        return None
    pairs = []
    for one, key in keys.pairs:
        holder = exp.Paren(this=one.copy())
        for column in list(holder.find_all(exp.Column)):
            column.replace(named(names[column.name]))
        pairs.append((holder.this, key))
    return Keys(keys.relation, tuple(pairs))
