"""Actions of a walk that change what is declared: sources, silver tables, views, settings."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import psycopg

from tests.walk.work import database
from tests.walk.world import PARTS, World

NAME = "walked"
SOURCE = f"""\
description: A table that the walk adds and takes away.
owner: tests
format: debezium
topic: shop.public.{NAME}
table: public.{NAME}
keys: [id]
columns:
  id: {{type: BIGINT, required: true}}
  kind: STRING
  amount: DECIMAL(12,2)
"""
SILVER = f"""\
/* silver
description: Rows of the walk.
*/
SELECT s.id, s.kind, s.amount FROM bronze.{NAME} AS s
"""
HEADER = """\
/* gold
description: Sums of the walk.
owner: tests
refresh: micro-batch
every: 10 minutes
*/
"""
FILES = {
    f"sources/{NAME}.yml": SOURCE,
    f"sql/silver/{NAME}.sql": SILVER,
}
VIEW = f"sql/gold/{NAME}.sql"
# The view before and after a change of its SQL.
VIEWS = (
    f"""\
SELECT s.kind, COUNT(*) AS rows, SUM(s.amount) AS amount
FROM silver.{NAME} AS s
GROUP BY ALL
""",
    f"""\
SELECT s.kind, COUNT(*) AS rows, MAX(s.amount) AS largest, SUM(s.amount) AS amount
FROM silver.{NAME} AS s
WHERE s.id % 2 = 0
GROUP BY ALL
""",
)
_ROWS = 500
_LIMITS = (2_000, 20_000, 1_000_000)


def deploy(world: World, rng: random.Random) -> str:
    """Add a source with its tables and a view, change the view, or take all of it away."""
    project = Path(world.settings.project_dir)
    view = project / VIEW
    if not view.exists():
        if not _fill(world, rng):
            return "unavailable"
        for name, text in FILES.items():
            (project / name).write_text(text)
        view.write_text(HEADER + VIEWS[0])
        what = "a new view and its source"
    elif VIEWS[0] in view.read_text():
        view.write_text(HEADER + VIEWS[1])
        what = "another SELECT"
    else:
        for name in (*FILES, VIEW):
            (project / name).unlink()
        what = "nothing of it"
    code, _ = world.tidemark("apply", "--yes")
    return f"{what}: {code}"


def _fill(world: World, rng: random.Random) -> bool:
    with database(world) as connection:
        if connection is None:
            return False
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {NAME} "
            "(id BIGINT PRIMARY KEY, kind TEXT, amount NUMERIC(12,2))"
        )
        _change(connection, rng)
        return True
    return False


def _change(connection: psycopg.Connection, rng: random.Random) -> None:
    first = rng.randrange(10 * _ROWS)
    connection.execute(
        f"INSERT INTO {NAME} SELECT one, 'kind ' || one %% 7, one * 0.01 "
        "FROM generate_series(%s::bigint, %s::bigint) AS one "
        f"ON CONFLICT (id) DO UPDATE SET amount = {NAME}.amount + 1",
        [first, first + _ROWS],
    )
    connection.execute(f"DELETE FROM {NAME} WHERE id %% %s = 0", [rng.randrange(2, 9)])


def change_the_new_table(world: World, rng: random.Random) -> str:
    """Change rows of the added table, also while it is not captured."""
    with database(world) as connection:
        if connection is None:
            return "unavailable"
        if connection.execute("SELECT to_regclass(%s)", [NAME]).fetchone() == (None,):
            return "there is no table"
        _change(connection, rng)
    return "changed"


def truncate_a_table(world: World, rng: random.Random) -> str:
    """Truncate a table that nothing refers to."""
    del rng
    with database(world) as connection:
        if connection is None:
            return "unavailable"
        connection.execute("TRUNCATE order_items")
    return "truncated"


def change_a_setting(world: World, rng: random.Random) -> str:
    """Limit the streams' batches in another way, and restart what has other settings."""
    file = Path(world.settings.project_dir) / "tidemark.yml"
    kept = [line for line in file.read_text().splitlines() if "max_offsets_per_trigger" not in line]
    limit = rng.choice(_LIMITS)
    kept.insert(kept.index("streams:") + 1, f"  max_offsets_per_trigger: {limit}")
    file.write_text("\n".join(kept) + "\n")
    code, _ = world.tidemark("stack", "up", "--parts", ",".join(PARTS), "--restart")
    return f"{limit}: {code}"


def snapshot_again(world: World, rng: random.Random) -> str:
    """Read every table again, as after a lost slot, and delete what was missed meanwhile."""
    del rng
    reason = ("--reason", "a step of the random walk")
    world.snapshot_again = True
    code, _ = world.tidemark("source", "resnapshot", "--run", *reason)
    return str(code)


DEPLOY_STEPS: dict[str, Callable[[World, random.Random], str]] = {
    "deploy": deploy,
    "change the new table": change_the_new_table,
    "truncate a table": truncate_a_table,
    "change a setting": change_a_setting,
    "snapshot again": snapshot_again,
}
