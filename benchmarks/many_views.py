"""A project with many views over 60 captured tables, the same for each number of views."""

from __future__ import annotations

import random
from pathlib import Path

TABLES = 60
SEED = 1
_SOURCE = """\
description: Table {number} of the database.
format: debezium
topic: shop.public.t{number}
table: public.t{number}
keys: [id]
columns:
  id: {{type: BIGINT, required: true}}
  ref_id: BIGINT
  other_id: BIGINT
  status: STRING
  kind: STRING
  amount: DECIMAL(12,2)
  created_at: TIMESTAMP
"""
_SILVER = """\
/* silver
description: Table {number} in its current state.
*/
SELECT s.id, s.ref_id, s.other_id, s.status, s.kind, s.amount, s.created_at
FROM bronze.t{number} AS s
"""
_GOLD = """\
/* gold
description: View number {number} of a company.
owner: team{team}
refresh: micro-batch
every: {every}
*/
{query}
"""
_SUMS = """\
SELECT a.kind, a.status, DATE(a.created_at) AS day, COUNT(*) AS n, SUM(a.amount) AS total,
  MAX(a.amount) AS most
FROM silver.t{a} AS a
WHERE a.amount > {limit}
GROUP BY ALL"""
_JOINS = """\
SELECT b.kind, COUNT(*) AS n, SUM(a.amount) AS total
FROM silver.t{a} AS a
JOIN silver.t{b} AS b ON b.id = a.ref_id
JOIN silver.t{c} AS c ON c.id = b.other_id
WHERE c.status = 's{limit}'
GROUP BY b.kind"""
_BEST = """\
WITH ranked AS (
  SELECT a.id, a.kind, a.amount,
    ROW_NUMBER() OVER (PARTITION BY a.kind ORDER BY a.amount DESC, a.id) AS place
  FROM silver.t{a} AS a
)
SELECT r.id, r.kind, r.amount, b.status
FROM ranked AS r
LEFT JOIN silver.t{b} AS b ON b.id = r.id
WHERE r.place <= {limit}"""
_OVER_VIEWS = """\
SELECT a.kind, SUM(a.total) AS total, SUM(b.n) AS n
FROM gold.v{first} AS a
JOIN gold.v{second} AS b ON b.kind = a.kind
GROUP BY a.kind"""


def write_project(folder: Path, views: int) -> None:
    """Write sources, silver tables and views.

    Half of the views aggregate one table. Of the others, a third joins three tables, a third has
    the best rows of groups, and a third joins two earlier views.

    Args:
        folder: an empty folder.
        views: their number, at least four.
    """
    chosen = random.Random(SEED)  # noqa: S311
    for number in range(TABLES):
        _write(folder / f"sources/t{number}.yml", _SOURCE.format(number=number))
        _write(folder / f"sql/silver/t{number}.sql", _SILVER.format(number=number))
    for number in range(views):
        a, b, c = chosen.sample(range(TABLES), 3)
        names = {"a": a, "b": b, "c": c, "limit": 1 + number % 50}
        if number < views // 2:
            query = _SUMS.format(**names)
        elif number % 3 < 2:
            query = (_JOINS, _BEST)[number % 3].format(**names)
        else:
            first, second = chosen.sample(range(views // 2), 2)
            query = _OVER_VIEWS.format(first=first, second=second)
        every = chosen.choice(("15 minutes", "1 hour", "1 day"))
        text = _GOLD.format(number=number, team=number % 10, every=every, query=query)
        _write(folder / f"sql/gold/v{number}.sql", text)


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
