"""The faults of a walk: killed and frozen processes, a full disk, what dead writers leave."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
from confluent_kafka import KafkaException, Producer

from spark_jobs.access.kafka import Principal, kafka_access
from tests.e2e.running import kill
from tests.walk.world import PARTS, World

_FROZEN_SECONDS = (2, 15)
# How long a command runs before it is killed.
_RUN_SECONDS = (1, 12)
_BLOCK_BYTES = 1 << 20
_KAFKA_SECONDS = 20


def kill_a_part(world: World, rng: random.Random) -> str:
    """Kill a part's process, as the kernel would; the supervisor restarts it."""
    return kill_part(world, rng.choice(PARTS))


def kill_two_parts(world: World, rng: random.Random) -> str:
    """Kill two parts at the same moment."""
    return ", ".join(kill_part(world, part) for part in rng.sample(PARTS, 2))


def kill_a_child(world: World, rng: random.Random) -> str:
    """Kill a child process of a part: the JVM of the streams, a backend of PostgreSQL."""
    part = rng.choice(PARTS)
    pid = world.running.part(part).pid
    if not pid:
        return f"{part} is not running"
    with suppress(psutil.NoSuchProcess):
        children = psutil.Process(pid).children(recursive=True)
        if children:
            chosen = rng.choice(sorted(children, key=lambda one: one.pid))
            name = chosen.name()
            kill(chosen.pid)
            return f"{part}: {name}"
    return f"{part} has no child process"


def freeze_a_part(world: World, rng: random.Random) -> str:
    """Stop all processes of a part for some seconds."""
    part, seconds = rng.choice(PARTS), rng.uniform(*_FROZEN_SECONDS)
    if not world.running.part(part).pid:
        return f"{part} is not running"
    with suppress(psutil.NoSuchProcess), world.running.standing_still(part):
        time.sleep(seconds)
    return f"{part} for {seconds:.1f} s"


def kill_a_refresh(world: World, rng: random.Random) -> str:
    """Kill a refresh while it runs; the next refresh continues it."""
    return _kill_command(world, rng, "refresh", rng.choice(world.views), "--force")


def kill_a_replay(world: World, rng: random.Random) -> str:
    """Kill a replay while it runs; the same request continues it."""
    view = rng.choice(world.views)
    reason = ("--reason", "a step of the random walk")
    return _kill_command(world, rng, "replay", "views", view, "--run", *reason)


def fill_the_disk(world: World, rng: random.Random) -> str:
    """Fill the lake's disk for some seconds; no writer can commit meanwhile."""
    if not world.own_disk:
        return "the lake does not have its own disk"
    ballast, seconds = Path(world.settings.lake) / ".ballast", rng.uniform(*_FROZEN_SECONDS)
    try:
        with suppress(OSError), ballast.open("wb") as file:
            while True:
                file.write(bytes(_BLOCK_BYTES))
        time.sleep(seconds)
    finally:
        ballast.unlink(missing_ok=True)
    return f"for {seconds:.1f} s"


def leave_files(world: World, rng: random.Random) -> str:
    """Leave the files of a dead writer: half a Parquet file, and a commit before its rename."""
    lake = Path(world.settings.lake)
    tables = sorted(one.parent for one in lake.glob("*/*/_delta_log"))
    if not tables:
        return "there is no table"
    table = rng.choice(tables)
    (table / f"part-00000-{rng.randrange(10**9):09}.snappy.parquet").write_bytes(b"PAR1 half")
    (table / "_delta_log" / f".{rng.randrange(10**6):020}.json.{rng.random()}.tmp").write_text("{")
    return f"{table.parent.name}.{table.name}"


def damage_a_checkpoint(world: World, rng: random.Random) -> str:
    """Empty the last file of offsets of a silver table's checkpoint while the streams are down."""
    world.running.stop("streams")
    try:
        folders = sorted(Path(world.settings.lake).glob("_checkpoints/silver.*/**/offsets"))
        files = [
            max(_batches(one), key=lambda file: int(file.name)) for one in folders if _batches(one)
        ]
        if not files:
            return "there is no checkpoint"
        chosen = rng.choice(files)
        chosen.write_text("")
    finally:
        world.running.start("streams")
    return str(chosen.relative_to(Path(world.settings.lake) / "_checkpoints"))


def leave_a_transaction_open(world: World, rng: random.Random) -> str:
    """Send records in a transaction that is never committed; the broker aborts it later.

    Until then it holds up readers of committed records.
    """
    topic, seconds = rng.choice(("click_events", "view_events")), rng.randrange(5, 30)
    options = {
        **kafka_access(world.settings, Principal.ADMIN).librdkafka(),
        "transactional.id": f"walk-{rng.random()}",
        "transaction.timeout.ms": seconds * 1000,
    }
    producer = Producer(options)
    try:
        producer.init_transactions(_KAFKA_SECONDS)
        producer.begin_transaction()
        for number in range(rng.randrange(1, 200)):
            producer.produce(topic, b"never committed", key=str(number))
        left = producer.flush(_KAFKA_SECONDS)
    except KafkaException as error:
        return f"unavailable: {error.args[0].name()}"
    return f"in {topic} for {seconds} s" if not left else f"{left} records were not delivered"


def _batches(folder: Path) -> list[Path]:
    return [one for one in folder.iterdir() if one.name.isdecimal()]


def kill_part(world: World, part: str) -> str:
    """Kill the process of a part, if it has one; returns what happened."""
    pid = world.running.part(part).pid
    if not pid:
        return f"{part} is not running"
    with suppress(psutil.NoSuchProcess):
        kill(pid)
    return part


def _kill_command(world: World, rng: random.Random, *words: str) -> str:
    seconds = rng.uniform(*_RUN_SECONDS)
    with world.running.command(*words) as process:
        time.sleep(seconds)
        ended = process.poll()
    return f"{' '.join(words[:3])}: " + ("ended" if ended is not None else f"{seconds:.1f} s")


FAULT_STEPS: dict[str, Callable[[World, random.Random], str]] = {
    "kill a part": kill_a_part,
    "kill a child": kill_a_child,
    "kill two parts": kill_two_parts,
    "freeze a part": freeze_a_part,
    "kill a refresh": kill_a_refresh,
    "kill a replay": kill_a_replay,
    "fill the disk": fill_the_disk,
    "leave files of a dead writer": leave_files,
    "damage a checkpoint": damage_a_checkpoint,
    "leave a transaction open": leave_a_transaction_open,
}
