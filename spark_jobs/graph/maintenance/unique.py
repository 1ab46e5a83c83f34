"""Which columns tell the rows of an operator apart."""

from __future__ import annotations

from sqlglot import exp

from spark_jobs.graph.maintenance.algebra import (
    Aggregate,
    Constant,
    Filter,
    Generate,
    Join,
    LeftJoin,
    Node,
    Project,
    Scan,
    Side,
    TopK,
    Union,
    Window,
    conjuncts,
    equality,
)


def unique_columns(node: Node) -> frozenset[str] | None:
    """Columns that no two rows of an operator share, where that can be proved."""
    match node:
        case Scan():
            return node.key
        case Filter() | TopK() | Window():
            return unique_columns(node.child)
        case Aggregate():
            return None if node.sessions else frozenset(name for name, _ in node.keys)
        case LeftJoin():
            left = unique_columns(node.left)
            if node.side is not Side.OUTER or left is None:
                return left
            right = unique_columns(node.right)
            return None if right is None else _tied(left | right, right, _pairs(node), left)
        case Join():
            return _unique_of_join(node)
        case Project():
            return _unique_of_project(node)
        case Union() | Generate() | Constant():
            return None


def _unique_of_project(node: Project) -> frozenset[str] | None:
    below = None if node.multiplies else unique_columns(node.child)
    if below is None:
        return None
    renamed = {value.name: name for name, value in node.outputs if isinstance(value, exp.Column)}
    return frozenset(renamed[one] for one in below) if below <= renamed.keys() else None


def _unique_of_join(node: Join) -> frozenset[str] | None:
    found = [unique_columns(one) for one in node.inputs]
    if any(one is None for one in found):
        return None
    known: frozenset[str] = frozenset().union(*(one for one in found if one is not None))
    pairs = [pair for one in node.conditions if (pair := equality(one))]
    for one, key in zip(node.inputs, found, strict=True):
        rest = known - set(one.columns)
        if key is not None and rest:
            known = _tied(known, key, pairs, rest)
    return known


def _tied(
    known: frozenset[str],
    key: frozenset[str],
    pairs: list[tuple[str, str]],
    others: frozenset[str],
) -> frozenset[str]:
    """Without a key that is equal, column by column, to columns that are known anyway."""
    partners = dict(pairs) | {right: left for left, right in pairs}
    return known - key if all(partners.get(one) in others for one in key) else known


def _pairs(node: LeftJoin) -> list[tuple[str, str]]:
    return [pair for one in conjuncts(node.condition) if (pair := equality(one))]
