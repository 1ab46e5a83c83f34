"""The actions of a walk: what users, sources and schedules do."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg

from spark_jobs.access.kafka import Principal, kafka_access
from spark_jobs.demo.errors import RecordsNotDeliveredError, ShopUnreachableError
from spark_jobs.demo.load import LoadOrder, run_load
from spark_jobs.gold.verify.published import Finding
from tests.walk.world import PARTS, World

_REASON = ("--reason", "a step of the random walk")
_MAX_ROWS = 20_000
_EQUAL = {Finding.EQUAL, Finding.EQUAL_WITHIN_TOLERANCE}
# A publication between two reads of the log can look like a foreign commit, so that is no error.
_DIFFERENT = {Finding.ROWS_DIFFER, Finding.COLUMNS_DIFFER, Finding.DEFINITION_CHANGED}

Action = Callable[[World, random.Random], str]


def load(world: World, rng: random.Random) -> str:
    """Change five tables and send events, some malformed or sent twice."""
    order = LoadOrder(rate=rng.choice((20, 60, 150)), seconds=3, seed=rng.randrange(10**6))
    try:
        access = kafka_access(world.settings, Principal.LOADER)
        tally = run_load(order, shop_dsn=world.shop, kafka=access)
    except (ShopUnreachableError, RecordsNotDeliveredError) as error:
        return f"unavailable: {error.condition}"
    changes, records = sum(tally.changes.values()), sum(tally.records.values())
    world.changes += changes + records
    return f"{changes} changes, {records} records"


def large_transaction(world: World, rng: random.Random) -> str:
    """Insert, update and delete many rows of two tables in one transaction."""
    count = rng.randrange(1_000, _MAX_ROWS)
    with database(world) as connection:
        if connection is None:
            return "unavailable"
        with connection.transaction():
            _change_rows(connection, count, rng)
    return f"{count} rows"


def rolled_back_transaction(world: World, rng: random.Random) -> str:
    """The same, rolled back: none of its changes may arrive."""
    with database(world) as connection:
        if connection is None:
            return "unavailable"
        with connection.transaction():
            _change_rows(connection, rng.randrange(100, 2_000), rng)
            raise psycopg.Rollback
    return "rolled back"


def _change_rows(connection: psycopg.Connection, count: int, rng: random.Random) -> None:
    # Loads use positive keys only.
    first = -rng.randrange(1, 10 * _MAX_ROWS)
    connection.execute(
        "INSERT INTO titles SELECT %s - one, 'walked ' || one, 'movie', 'drama', one, now() "
        "FROM generate_series(1, %s) AS one ON CONFLICT (title_id) DO UPDATE SET "
        "duration_seconds = excluded.duration_seconds + 1, updated_at = now()",
        [first, count],
    )
    connection.execute("UPDATE orders SET amount = amount + 0.01, updated_at = now()")
    connection.execute(
        "DELETE FROM titles WHERE title_id < 0 AND title_id %% %s = 0", [rng.randrange(2, 9)]
    )


def alter_table(world: World, rng: random.Random) -> str:
    """Add or drop a column that no source declares."""
    del rng
    with database(world) as connection:
        if connection is None:
            return "unavailable"
        if world.altered:
            connection.execute("ALTER TABLE users DROP COLUMN IF EXISTS walked")
        else:
            connection.execute("ALTER TABLE users ADD COLUMN IF NOT EXISTS walked INTEGER")
            connection.execute("UPDATE users SET walked = 1")
        world.altered = not world.altered
    return "added" if world.altered else "dropped"


@contextmanager
def database(world: World) -> Iterator[psycopg.Connection | None]:
    """A connection to the shop; None if the database is unavailable. It may fail meanwhile."""
    try:
        connection = psycopg.connect(world.shop, autocommit=True, connect_timeout=5)
    except psycopg.OperationalError:
        yield None
        return
    try:
        yield connection
    except psycopg.OperationalError:
        # The server died; PostgreSQL keeps the whole transaction or none of it.
        return
    finally:
        connection.close()


def refresh_a_view(world: World, rng: random.Random) -> str:
    """Refresh one view, as a person does on the command line."""
    view = rng.choice(world.views)
    code, _ = world.tidemark("refresh", view)
    return f"{view}: {code}"


def refresh_all_views(world: World, rng: random.Random) -> str:
    """Refresh all views in one tick."""
    del rng
    code, _ = world.tidemark("refresh", "--all")
    return str(code)


def roll_a_view_back(world: World, rng: random.Random) -> str:
    """Publish earlier rows of a view, which pins it."""
    view = rng.choice(world.views)
    code, _ = world.tidemark("rollback", view, *_REASON)
    if code == 0:
        world.pinned.add(view)
    return f"{view}: {code}"


def release_a_view(world: World, rng: random.Random) -> str:
    """Unpin a view, so that refreshes continue."""
    if not world.pinned:
        return "no view is pinned"
    view = rng.choice(sorted(world.pinned))
    code, _ = world.tidemark("release", view)
    if code == 0:
        world.pinned.discard(view)
    return f"{view}: {code}"


def replay_a_view(world: World, rng: random.Random) -> str:
    """Recompute a view in staging, and publish the rows that differ."""
    view = rng.choice(world.views)
    code, _ = world.tidemark("replay", "views", view, "--run", *_REASON)
    return f"{view}: {code}"


def verify_a_view(world: World, rng: random.Random) -> str:
    """Compare a published view with its SQL at its input versions, while all else goes on.

    It may fail, because the view is not published yet or a part is unavailable.
    """
    view = rng.choice(world.views)
    code, output = world.tidemark("verify", view, "--json")
    return f"{view}: {verified(code, output)}"


def verified(code: int, output: str) -> str:
    """The finding of ``verify --json`` for one view, or the exit status if it printed none.

    Raises:
        AssertionError: the table differs from its SQL, or no finding explains the exit status.
    """
    # Warnings on stderr are part of the output, so it is not always JSON.
    findings = re.findall(r'"finding": "(\w+)"', output)
    if code == 0:
        assert findings, output
        assert _EQUAL.issuperset(findings), output
    else:
        assert (_EQUAL | _DIFFERENT).isdisjoint(findings), output
    return " ".join(findings) or str(code)


def rebuild_a_table(world: World, rng: random.Random) -> str:
    """Compute a silver table again from its records, and compare, while the streams go on.

    It may fail, because a batch was cut off and the streams are down, for instance.
    """
    table = rng.choice(world.tables)
    code, output = world.tidemark("rebuild", f"silver.{table}", "--json")
    return f"{table}: {rebuilt(code, output)}"


def rebuilt(code: int, output: str) -> str:
    """What ``rebuild --json`` found, or the exit status if it ended with an error.

    Raises:
        AssertionError: the table differs from its records.
    """
    if code != 0:
        return str(code)
    assert '"right": true' in output, output
    return "equal"


def maintain(world: World, rng: random.Random) -> str:
    """Remove files that no retained version needs."""
    del rng
    code, _ = world.tidemark("maintain")
    return str(code)


def trim_logs(world: World, rng: random.Random) -> str:
    """Remove entries of logs, of which few are kept, while streams and refreshes read and write."""
    del rng
    code, text = world.tidemark("maintain", "--logs", "--json")
    removed = sum(map(int, re.findall(r'"entries": (\d+)', text)))
    return f"{removed} files: {code}"


def restart_a_part(world: World, rng: random.Random) -> str:
    """Restart a part, as an operator does."""
    part = rng.choice(PARTS)
    code, _ = world.tidemark("stack", "restart", part)
    return f"{part}: {code}"


def pause(world: World, rng: random.Random) -> str:
    """Wait some seconds, so that streams catch up."""
    del world
    seconds = rng.uniform(1, 8)
    time.sleep(seconds)
    return f"{seconds:.1f} s"


ACTION_STEPS: dict[str, Action] = {
    "load": load,
    "large transaction": large_transaction,
    "rolled-back transaction": rolled_back_transaction,
    "alter table": alter_table,
    "refresh a view": refresh_a_view,
    "refresh all views": refresh_all_views,
    "roll a view back": roll_a_view_back,
    "release a view": release_a_view,
    "replay a view": replay_a_view,
    "verify a view": verify_a_view,
    "rebuild a table": rebuild_a_table,
    "maintain": maintain,
    "trim logs": trim_logs,
    "restart a part": restart_a_part,
    "pause": pause,
}
