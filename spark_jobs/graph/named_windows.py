"""Windows of the WINDOW clause."""

from __future__ import annotations

from sqlglot import exp

_PARTS = ("partition_by", "order", "spec")


def with_windows_in_place(tree: exp.Query) -> exp.Query:
    """Write ``OVER (...)`` for each ``OVER name``, and drop the WINDOW clauses.

    So all checks and rules know one form only. A name without a definition stays.

    Args:
        tree: a query that is not qualified; it is changed.

    >>> from spark_jobs.graph.dialect import parse, to_sql
    >>> tree = parse("SELECT SUM(a) OVER v AS s FROM t WINDOW w AS (ORDER BY b), v AS w")
    >>> to_sql(with_windows_in_place(tree))
    'SELECT SUM(a) OVER (ORDER BY b) AS s FROM t'
    """
    for select in tree.find_all(exp.Select):
        clause = select.args.get("windows") or ()
        definitions = {one.name.lower(): one for one in clause}
        if not definitions or len(definitions) < len(clause):
            continue
        select.set("windows", None)
        for window in list(select.find_all(exp.Window)):
            if window.parent_select is select:
                _put_in_place(window, definitions)
    return tree


def _put_in_place(window: exp.Window, definitions: dict[str, exp.Window]) -> None:
    name = window.args.get("alias")
    found = definitions.get(name.name.lower()) if name is not None else None
    if found is not None and (other := found.args.get("alias")) is not None:
        # Spark follows no second name.
        found = definitions.get(other.name.lower())
    if found is not None and found.args.get("alias") is None:
        copy = found.copy()
        window.set("alias", None)
        for part in _PARTS:
            window.set(part, copy.args.get(part))
