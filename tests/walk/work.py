"""The work of a walk: what users, sources and schedules do."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg

from spark_jobs.access.kafka import Principal, kafka_access
from spark_jobs.demo.errors import RecordsNotDeliveredError, ShopUnreachableError
from spark_jobs.demo.load import LoadOrder, run_load
from tests.walk.world import PARTS, World

_REASON = ("--reason", "a step of the random walk")
_LARGEST = 20_000

Doing = Callable[[World, random.Random], str]


def load(world: World, rng: random.Random) -> str:
    """Changes of five tables and events, some of them malformed or sent twice."""
    order = LoadOrder(rate=rng.choice((20, 60, 150)), seconds=3, seed=rng.randrange(10**6))
    try:
        access = kafka_access(world.settings, Principal.LOADER)
        tally = run_load(order, shop_dsn=world.shop, kafka=access)
    except (ShopUnreachableError, RecordsNotDeliveredError) as away:
        return f"away: {away.condition}"
    return f"{sum(tally.records.values())} records"


def large_transaction(world: World, rng: random.Random) -> str:
    """Many rows of two tables in one transaction: inserted, changed and partly deleted."""
    many = rng.randrange(1_000, _LARGEST)
    with database(world) as connection:
        if connection is None:
            return "away"
        with connection.transaction():
            _many(connection, many, rng)
    return f"{many} rows"


def transaction_taken_back(world: World, rng: random.Random) -> str:
    """The same, rolled back: nothing of it may arrive."""
    with database(world) as connection:
        if connection is None:
            return "away"
        with connection.transaction():
            _many(connection, rng.randrange(100, 2_000), rng)
            raise psycopg.Rollback
    return "taken back"


def _many(connection: psycopg.Connection, many: int, rng: random.Random) -> None:
    # Negative keys are no load run's.
    first = -rng.randrange(1, 10 * _LARGEST)
    connection.execute(
        "INSERT INTO titles SELECT %s - one, 'walked ' || one, 'movie', 'drama', one, now() "
        "FROM generate_series(1, %s) AS one ON CONFLICT (title_id) DO UPDATE SET "
        "duration_seconds = excluded.duration_seconds + 1, updated_at = now()",
        [first, many],
    )
    connection.execute("UPDATE orders SET amount = amount + 0.01, updated_at = now()")
    connection.execute(
        "DELETE FROM titles WHERE title_id < 0 AND title_id %% %s = 0", [rng.randrange(2, 9)]
    )


def alter_table(world: World, rng: random.Random) -> str:
    """A column that nobody declares comes or goes."""
    del rng
    with database(world) as connection:
        if connection is None:
            return "away"
        if world.altered:
            connection.execute("ALTER TABLE users DROP COLUMN IF EXISTS walked")
        else:
            connection.execute("ALTER TABLE users ADD COLUMN IF NOT EXISTS walked INTEGER")
            connection.execute("UPDATE users SET walked = 1")
        world.altered = not world.altered
    return "added" if world.altered else "dropped"


@contextmanager
def database(world: World) -> Iterator[psycopg.Connection | None]:
    """A connection to the shop, or None where the database is away; it may go away meanwhile."""
    try:
        connection = psycopg.connect(world.shop, autocommit=True, connect_timeout=5)
    except psycopg.OperationalError:
        yield None
        return
    try:
        yield connection
    except psycopg.OperationalError:
        # It died in the middle: the transaction is either whole or not there.
        return
    finally:
        connection.close()


def refresh_a_view(world: World, rng: random.Random) -> str:
    """By hand, as somebody would at the command line."""
    view = rng.choice(world.views)
    code, _ = world.tidemark("refresh", view)
    return f"{view}: {code}"


def refresh_all_views(world: World, rng: random.Random) -> str:
    """All of them, under one tick."""
    del rng
    code, _ = world.tidemark("refresh", "--all")
    return str(code)


def roll_a_view_back(world: World, rng: random.Random) -> str:
    """It shows earlier rows and is pinned there."""
    view = rng.choice(world.views)
    code, _ = world.tidemark("rollback", view, *_REASON)
    if code == 0:
        world.pinned.add(view)
    return f"{view}: {code}"


def release_a_view(world: World, rng: random.Random) -> str:
    """A pinned view goes on."""
    if not world.pinned:
        return "none is pinned"
    view = rng.choice(sorted(world.pinned))
    code, _ = world.tidemark("release", view)
    if code == 0:
        world.pinned.discard(view)
    return f"{view}: {code}"


def replay_a_view(world: World, rng: random.Random) -> str:
    """Computed again beside its table, and published where it differs."""
    view = rng.choice(world.views)
    code, _ = world.tidemark("replay", "views", view, "--run", *_REASON)
    return f"{view}: {code}"


def verify_a_view(world: World, rng: random.Random) -> str:
    """In the middle of everything: whatever is published equals its SQL at its versions."""
    view = rng.choice(world.views)
    code, said = world.tidemark("verify", view)
    assert "different" not in said, said
    return f"{view}: {code}"


def maintain(world: World, rng: random.Random) -> str:
    """What nobody needs is removed."""
    del rng
    code, _ = world.tidemark("maintain")
    return str(code)


def restart_a_part(world: World, rng: random.Random) -> str:
    """Stopped and started as an operator does."""
    part = rng.choice(PARTS)
    code, _ = world.tidemark("stack", "restart", part)
    return f"{part}: {code}"


def pause(world: World, rng: random.Random) -> str:
    """Let streams catch up for a while."""
    del world
    seconds = rng.uniform(1, 8)
    time.sleep(seconds)
    return f"{seconds:.1f} s"


WORK: dict[str, Doing] = {
    "load": load,
    "large transaction": large_transaction,
    "transaction taken back": transaction_taken_back,
    "alter table": alter_table,
    "refresh a view": refresh_a_view,
    "refresh all views": refresh_all_views,
    "roll a view back": roll_a_view_back,
    "release a view": release_a_view,
    "replay a view": replay_a_view,
    "verify a view": verify_a_view,
    "maintain": maintain,
    "restart a part": restart_a_part,
    "pause": pause,
}
