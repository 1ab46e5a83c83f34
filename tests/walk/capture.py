"""Faults of a walk in capturing changes: Connect dies at bad moments, or forgets its offsets."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import psycopg
from confluent_kafka import KafkaException

from spark_jobs.serving.source_dsn import source_dsn
from spark_jobs.stack.kafka import admin
from spark_jobs.stack.postgres import SHOP, connect
from spark_jobs.stack.slot import connector_slot_lost
from tests.servers import outgrown_slots
from tests.walk.deploys import snapshot_again
from tests.walk.faults import kill_part
from tests.walk.work import database
from tests.walk.world import WalkFailedError, World

_ROWS = 20_000
_SNAPSHOT_SECONDS = (0.5, 6)
_KAFKA_SECONDS = 20
_NAMED_SECONDS = 60


def kill_in_a_transaction(world: World, rng: random.Random) -> str:
    """Kill Connect while a transaction and its COPY are open; they are committed afterwards."""
    first = -rng.randrange(20 * _ROWS, 40 * _ROWS)
    half = _ROWS // 2
    with database(world) as connection:
        if connection is None:
            return "unavailable"
        with connection.transaction():
            connection.execute("UPDATE orders SET amount = amount + 0.01, updated_at = now()")
            connection.execute("DELETE FROM titles WHERE title_id <= %s", [-20 * _ROWS])
            columns = "title_id, name, kind, genre, duration_seconds, updated_at"
            with (
                connection.cursor() as cursor,
                cursor.copy(f"COPY titles ({columns}) FROM STDIN") as copy,
            ):
                for number in range(_ROWS):
                    if number == half:
                        kill_part(world, "connect")
                    row = (first - number, f"copied {number}", "movie", "drama", number, "now")
                    copy.write_row(row)
        return f"{_ROWS} rows"
    return "the database died"


def kill_a_snapshot(world: World, rng: random.Random) -> str:
    """Kill Connect while it reads every table again; it begins once more."""
    code = snapshot_again(world, rng)
    seconds = rng.uniform(*_SNAPSHOT_SECONDS)
    time.sleep(seconds)
    kill_part(world, "connect")
    return f"{code}, after {seconds:.1f} s"


def lose_offsets(world: World, rng: random.Random) -> str:
    """Delete the topic of Connect's offsets; a new snapshot misses deletes in the meantime."""
    del rng
    world.snapshot_again = True
    world.running.stop("connect")
    topic = world.settings.kafka_connect.offsets_topic
    # The answers arrive only as long as the client exists.
    client = admin(world.settings)
    try:
        for answer in client.delete_topics([topic]).values():
            answer.result(_KAFKA_SECONDS)
    except KafkaException as error:
        return f"unavailable: {error.args[0].name()}"
    finally:
        world.running.start("connect")
    return "lost"


def _slot_is_named(world: World) -> bool:
    _, said = world.tidemark("status", "--check")
    return "changes-lost" in said


def outgrow_the_slot(world: World, rng: random.Random) -> str:
    """Let the database remove log that Connect needs; a person reads every table again.

    Raises:
        WalkFailedError: ``status --check`` does not name the lost slot.
    """
    world.running.stop("connect")
    try:
        with connect(world.settings, SHOP) as source, outgrown_slots(source):
            time.sleep(1)
    except psycopg.Error:
        return "unavailable"
    finally:
        world.running.start("connect")
    time.sleep(rng.uniform(*_SNAPSHOT_SECONDS))
    # The step before may have cut the database off for a while.
    deadline = time.monotonic() + _NAMED_SECONDS
    while not (named := _slot_is_named(world)) and connector_slot_lost(source_dsn(world.settings)):
        if time.monotonic() > deadline:
            raise WalkFailedError("status --check does not name the lost slot")
    return f"named: {named}, {snapshot_again(world, rng)}"


CAPTURE_STEPS: dict[str, Callable[[World, random.Random], str]] = {
    "kill Connect in a transaction": kill_in_a_transaction,
    "kill a snapshot": kill_a_snapshot,
    "lose Connect's offsets": lose_offsets,
    "outgrow the slot": outgrow_the_slot,
}
