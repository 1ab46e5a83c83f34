"""The staged change of a view as DuckDB's SQL: rows to delete and rows to insert."""

from __future__ import annotations

from collections.abc import Mapping

from spark_jobs.graph.duck.queries import Translated
from spark_jobs.graph.duck.typed import quoted, text_of
from spark_jobs.graph.maintenance.relation import WEIGHT

# The staged column with the operation of a row, and its stored values.
OPERATION = "__operation"
DELETE, INSERT = "leaves", "enters"


def keyed(change: Translated, types: Mapping[str, str]) -> str:
    """With a key, a row is deleted or inserted once; anything else is an error.

    Args:
        change: the view's columns and ``__w``.
        types: types of the published table's columns, by name.
    """
    word = (
        f"CASE {WEIGHT} WHEN -1 THEN '{DELETE}' WHEN 1 THEN '{INSERT}'"
        f" ELSE {_fault('a row of a unique key comes twice')} END AS {OPERATION}"
    )
    return change.typed_as(types, word)


def unkeyed(change: Translated, types: Mapping[str, str], published: str) -> str:
    """Without a key, all copies of a changed row are deleted, and the remaining ones inserted.

    Args:
        change: the view's columns and ``__w``.
        types: types of the published table's columns, by name.
        published: name of the published table's relation.
    """
    names = ", ".join(map(quoted, types))
    of_fewer = ", ".join(f"f.{quoted(name)}" for name in types)
    same = " AND ".join(f"f.{quoted(n)} IS NOT DISTINCT FROM p.{quoted(n)}" for n in types)
    lacking = _fault("a row to delete is not there")
    each = "unnest(generate_series(1::BIGINT, __copies))"
    return (
        f"WITH change AS ({change.typed_as(types, WEIGHT)}),"
        f" counted AS (SELECT {of_fewer}, f.{WEIGHT} AS __fewer, count(p.__here) AS __here"
        f" FROM (FROM change WHERE {WEIGHT} < 0) AS f"
        f" LEFT JOIN (SELECT *, 1 AS __here FROM {quoted(published.lower())}) AS p ON {same}"
        f" GROUP BY ALL),"
        f" moved AS ("
        f"SELECT {names}, '{DELETE}' AS {OPERATION},"
        f" CASE WHEN __here + __fewer >= 0 THEN __here"
        f" ELSE CAST({lacking} AS BIGINT) END AS __copies"
        f" FROM counted"
        f" UNION ALL SELECT {names}, '{INSERT}', CAST(__here + __fewer AS BIGINT)"
        f" FROM counted WHERE __here + __fewer > 0"
        f" UNION ALL SELECT {names}, '{INSERT}', CAST({WEIGHT} AS BIGINT)"
        f" FROM change WHERE {WEIGHT} > 0)"
        f" SELECT {names}, {OPERATION} FROM (SELECT *, {each} AS __copy FROM moved) AS m"
    )


def differing(staged: str, published: str, names: list[str]) -> tuple[str, str]:
    """The rows in which two tables with the same columns differ, and the staged rows among them.

    Args:
        staged: name of the relation with the new content.
        published: name of the relation with the current content.
        names: column names.

    Returns:
        SQL of the differing rows, each once; and SQL of the staged rows among them, with all
            copies. Both select ``names``.
    """
    columns = ", ".join(map(quoted, names))
    one, other = quoted(staged), quoted(published)
    rows = (
        f"SELECT DISTINCT {columns} FROM ("
        f"(SELECT {columns} FROM {one} EXCEPT ALL SELECT {columns} FROM {other})"
        f" UNION ALL (SELECT {columns} FROM {other} EXCEPT ALL SELECT {columns} FROM {one})) AS d"
    )
    same = " AND ".join(f"s.{quoted(n)} IS NOT DISTINCT FROM d.{quoted(n)}" for n in names)
    inserted = f"SELECT {columns} FROM {one} AS s SEMI JOIN ({rows}) AS d ON {same}"
    return rows, inserted


def _fault(text: str) -> str:
    return f"error({text_of(text)})"
