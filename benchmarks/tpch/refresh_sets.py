"""Refresh sets: deterministic changes of the tables, written by delta-rs without Tidemark.

RF1 inserts orders with their lines, RF2 deletes orders with their lines, and RF3 updates orders,
lines, balances, stock and parts. A third of the changed orders goes to each. The specification's
own sets change 0.1 % of the orders; here the share is a parameter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from deltalake import write_deltalake

from benchmarks.tpch.duck import Duck
from benchmarks.tpch.tables import KEYS, table, versions

SHARES = (0.001, 0.01, 0.1, 0.5)
# Rows of a table in one merge, about; 8 million lines are 2 to 3 GB in memory.
MERGED_ROWS = 8_000_000
_DAYS = 30
_INSERTED = {
    "orders": """
SELECT o.* REPLACE (
  p.fresh AS o_orderkey, p.customer AS o_custkey, o.o_orderdate + p.days AS o_orderdate
)
FROM bronze.orders AS o JOIN picks AS p ON o.o_orderkey = p.orderkey ORDER BY p.fresh""",
    "lineitem": """
SELECT l.* REPLACE (
  p.fresh AS l_orderkey,
  l.l_shipdate + p.days AS l_shipdate,
  l.l_commitdate + p.days AS l_commitdate,
  l.l_receiptdate + p.days AS l_receiptdate
)
FROM bronze.lineitem AS l JOIN picks AS p ON l.l_orderkey = p.orderkey
ORDER BY p.fresh, l.l_linenumber""",
}
# The commit date stays, so that lines become late or are no longer late.
_UPDATED = {
    "orders": """
SELECT
  o.o_orderkey,
  o.o_orderdate + p.days AS o_orderdate,
  CAST(o.o_totalprice + p.days AS DECIMAL(15, 2)) AS o_totalprice
FROM bronze.orders AS o JOIN picks AS p ON o.o_orderkey = p.orderkey""",
    "lineitem": """
SELECT
  l.l_orderkey,
  l.l_linenumber,
  CAST(1 + (l.l_quantity + abs(p.days)) % 50 AS DECIMAL(15, 2)) AS l_quantity,
  CAST(l.l_extendedprice + p.days AS DECIMAL(15, 2)) AS l_extendedprice,
  l.l_shipdate + p.days AS l_shipdate,
  l.l_receiptdate + p.days AS l_receiptdate
FROM bronze.lineitem AS l JOIN picks AS p ON l.l_orderkey = p.orderkey""",
}
# Columns that RF3 sets in the other tables, with minimum and maximum. Decimals are in cents.
_SET = {
    "customer": {"c_acctbal": (-99_999, 999_999)},
    "supplier": {"s_acctbal": (-99_999, 999_999)},
    "partsupp": {"ps_availqty": (1, 9_999), "ps_supplycost": (100, 100_000)},
    "part": {"p_size": (1, 50), "p_retailprice": (90_000, 210_000)},
}
_MONEY = frozenset(["c_acctbal", "s_acctbal", "ps_supplycost", "p_retailprice"])


@dataclass(frozen=True)
class RefreshSet:
    """The changes of a set.

    Attributes:
        versions: of every table, after the changes.
        orders: number of inserted, of deleted and of updated orders.
    """

    versions: dict[str, int]
    orders: int


def apply(lake: Path, *, share: float, seed: int, step: int, recent: bool = False) -> RefreshSet:
    """Change the tables in their folder.

    Args:
        lake: the folder of the tables.
        share: share of changed orders.
        seed: the same seed, step and tables give the same changes.
        step: the number of the set, so that sets differ.
        recent: change the orders with the greatest keys instead of orders of any age.
    """
    random = np.random.default_rng([seed, step])
    duck = Duck(lake)
    keys = _keys(duck, "orders")["o_orderkey"].to_numpy()
    count = max(1, round(len(keys) * share / 3))
    chosen = random.permutation(keys[-3 * count :] if recent else keys)[: 3 * count]
    picks = _picks(duck, chosen, random)
    fresh = pa.array(np.arange(count, dtype=np.int64) + int(keys.max()) + 1)
    parts = [picks.slice(at * count, count) for at in range(3)]
    inserted = parts[0].append_column("fresh", fresh)
    new = {name: _rows(duck, sql, inserted) for name, sql in _INSERTED.items()}
    changed = {name: _rows(duck, sql, parts[1]) for name, sql in _UPDATED.items()}
    for name, rows in new.items():
        write_deltalake(lake / name, rows, mode="append")
        _delete(lake, name, parts[2])
        _update(lake, name, changed[name])
    for name, columns in _SET.items():
        _update(lake, name, _values(_keys(duck, name), columns, share=share, random=random))
    return RefreshSet(versions(lake), count)


def _picks(duck: Duck, orders: npt.NDArray[np.int64], random: np.random.Generator) -> pa.Table:
    """Chosen orders: ``orderkey``, a ``customer`` for each, and the shift of dates in ``days``."""
    customers = _keys(duck, "customer")["c_custkey"].to_numpy()
    days = random.integers(1, _DAYS, len(orders)) * random.choice([-1, 1], len(orders))
    return pa.table(
        {
            "orderkey": orders,
            "customer": random.choice(customers, len(orders)),
            "days": pa.array(days, pa.int32()),
        }
    )


def _keys(duck: Duck, name: str) -> pa.Table:
    columns = ", ".join(KEYS[name])
    return _arrow(duck, f"SELECT {columns} FROM bronze.{name} ORDER BY {columns}")


def _rows(duck: Duck, query: str, picks: pa.Table) -> pa.Table:
    duck.connection.register("picks", picks)
    return _arrow(duck, query)


def _arrow(duck: Duck, query: str) -> pa.Table:
    return duck.connection.sql(query).to_arrow_table()


def _values(
    keys: pa.Table,
    columns: dict[str, tuple[int, int]],
    *,
    share: float,
    random: np.random.Generator,
) -> pa.Table:
    """New values for a share of a table's rows."""
    count = max(1, round(len(keys) * share))
    rows = keys.take(pa.array(np.sort(random.permutation(len(keys))[:count])))
    for name, (low, high) in columns.items():
        drawn = pa.array(random.integers(low, high, count, endpoint=True))
        rows = rows.append_column(name, _money(drawn) if name in _MONEY else drawn.cast("int32"))
    return rows


def _money(cents: pa.Array) -> pa.Array:
    values = [Decimal(one).scaleb(-2) for one in cents.to_pylist()]
    return pa.array(values, pa.decimal128(15, 2))


def _delete(lake: Path, name: str, picks: pa.Table) -> None:
    key = KEYS[name][0]
    rows = pa.table({key: picks.column("orderkey")})
    for part, bounds in _parts(lake, name, rows):
        same = f"t.{key} = s.{key} AND {bounds}"
        merge = table(lake, name).merge(part, same, source_alias="s", target_alias="t")
        merge.when_matched_delete().execute()


def _update(lake: Path, name: str, rows: pa.Table) -> None:
    values = {one: f"s.{one}" for one in rows.column_names if one not in KEYS[name]}
    for part, bounds in _parts(lake, name, rows):
        same = " AND ".join([*(f"t.{key} = s.{key}" for key in KEYS[name]), bounds])
        merge = table(lake, name).merge(part, same, source_alias="s", target_alias="t")
        merge.when_matched_update(values).execute()


def _parts(lake: Path, name: str, rows: pa.Table) -> Iterator[tuple[pa.Table, str]]:
    """Rows in parts by ranges of the first key, each with a condition on the target.

    For a table with a change feed, delta-rs holds all rows of the files that it reads in memory.
    """
    key = KEYS[name][0]
    ordered = rows.sort_by(key)
    keys = ordered[key].to_numpy()
    first, last = int(keys[0]), int(keys[-1])
    found = Duck(lake).connection.execute(
        f"SELECT count(*) FROM bronze.{name} WHERE {key} BETWEEN {first} AND {last}"
    )
    count = math.ceil(found.fetchall()[0][0] / MERGED_ROWS)
    bounds = np.searchsorted(keys, np.linspace(first, last + 1, count + 1))
    for begin, end in pairwise(bounds.tolist()):
        if end > begin:
            condition = f"t.{key} BETWEEN {keys[begin]} AND {keys[end - 1]}"
            yield ordered.slice(begin, end - begin), condition
