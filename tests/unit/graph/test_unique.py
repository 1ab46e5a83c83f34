"""The columns that tell a view's rows apart, from its SQL alone."""

from __future__ import annotations

import pytest

from spark_jobs.graph.maintenance.describe import maintenance_of

KEYS = {name: frozenset({"id"}) for name in ("silver.t", "silver.u", "silver.v", "silver.w")}
T, U = "silver.t AS t", "silver.u AS u"
W = "WINDOW(t.at, '5 minutes')"
SESSION = f"SESSION_{W}"


TYPES = {
    "silver.t": {"id": "bigint", "uid": "bigint", "x": "bigint", "name": "string", "f": "double"},
    "silver.u": {"id": "bigint", "vid": "int", "x": "bigint", "name": "string", "f": "double"},
    "silver.v": {"id": "int"},
    "silver.w": {"id": "double"},
}


def key(query: str) -> tuple[str, ...]:
    found, _ = maintenance_of(query, keys=KEYS, types=TYPES)
    return found.key


def joined(on: str, *, kind: str = "JOIN", more: str = "") -> str:
    outputs = "t.id AS a, u.id AS b, t.f AS f, u.f AS g, t.name AS n"
    return f"SELECT {outputs} FROM {T} {kind} {U} ON {on} {more}"


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        (f"SELECT t.id AS a, t.x AS x FROM {T} WHERE t.x > 0", ("a",)),
        (f"SELECT t.x AS x FROM {T}", ()),
        (f"SELECT t.id AS a FROM {T} ORDER BY t.x, t.id LIMIT 3", ("a",)),
        (f"SELECT t.x AS x, COUNT(*) AS n FROM {T} GROUP BY t.x", ("x",)),
        (f"SELECT COUNT(*) AS n FROM {T} GROUP BY t.x", ()),
        (f"SELECT t.x AS x, COUNT(*) AS n FROM {T} GROUP BY t.x, t.name", ()),
        (f"SELECT t.id AS a, u.x AS x FROM {T} JOIN {U} ON u.id = t.uid", ("a",)),
        (f"SELECT t.id AS a, u.id AS b FROM {T} JOIN {U} ON u.x = t.x", ("a", "b")),
        (f"SELECT t.id AS a, u.id AS b FROM {T} JOIN {U} ON u.id = t.id", ("b",)),
        (
            f"SELECT s.x, u.id AS b FROM (SELECT t.x FROM {T}) AS s LEFT JOIN {U} ON u.x = s.x",
            (),
        ),
        (f"SELECT t.id AS a, EXPLODE(t.xs) AS x FROM {T}", ()),
        (f"SELECT t.id AS a FROM {T} INTERSECT SELECT u.id FROM {U}", ("a",)),
        (f"SELECT t.id AS a FROM {T} INTERSECT ALL SELECT u.id FROM {U}", ()),
        (f"SELECT {W}.start AS s, COUNT(*) AS n FROM {T} GROUP BY {W}", ("s",)),
        (f"SELECT {W}.end AS e, {W}.start AS s FROM {T} GROUP BY {W}", ("e",)),
        (f"SELECT {W} AS w, MAX(t.x) AS m FROM {T} GROUP BY {W}", ("w",)),
        (f"SELECT t.x AS x, {W}.start AS s FROM {T} GROUP BY t.x, {W}", ("x", "s")),
        (f"SELECT DATE({W}.start) AS d, COUNT(*) AS n FROM {T} GROUP BY {W}", ()),
        (
            f"SELECT {SESSION}.start AS s, COUNT(*) AS n FROM {T} GROUP BY {SESSION}",
            (),
        ),
        (f"SELECT t.p.start AS s, COUNT(*) AS n FROM {T} GROUP BY t.p", ()),
        (f"SELECT CAST(t.id AS BOOLEAN) AS a FROM {T}", ()),
        # Fields with the names of columns.
        (f"SELECT (t.p).id.x AS x FROM {T} WHERE t.id > 0", ()),
        (f"SELECT (s.q).e.x AS x FROM (SELECT t.p AS q, t.id AS e FROM {T}) AS s", ()),
        (
            (
                f"SELECT (s.q).e.start AS x FROM (SELECT MAX(t.p) AS q, {W} AS e FROM {T} "
                f"GROUP BY {W}) AS s"
            ),
            (),
        ),
    ],
)
def test_a_key_is_proved_or_none_is_named(query: str, columns: tuple[str, ...]) -> None:
    assert key(query) == columns


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        (joined("u.id = t.id"), ("b",)),
        (joined("u.id = t.uid"), ("a",)),
        (joined("u.x = t.id"), ("b",)),
        (joined("u.x = t.x"), ("a", "b")),
        (joined("u.id = t.uid", kind="LEFT JOIN"), ("a",)),
        (joined("u.x = t.id", kind="LEFT JOIN"), ("a", "b")),
        (joined("u.id = t.uid AND u.x > 0", more="JOIN silver.v AS v ON v.id = u.vid"), ("a",)),
        # Between types, several values may equal one.
        (joined("u.id = t.name"), ("a", "b")),
        (joined("u.id = t.f"), ("a", "b")),
        # 0.0 equals -0.0.
        (f"SELECT t.id AS a, w.id AS b FROM {T} JOIN silver.w AS w ON w.id = t.f", ("a", "b")),
        (joined("u.id = t.uid", more="JOIN silver.v AS v ON v.id = u.x"), ()),
    ],
)
def test_a_row_that_another_chooses_needs_no_key(query: str, columns: tuple[str, ...]) -> None:
    assert key(query) == columns
