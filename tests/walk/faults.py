"""The faults of a walk: processes that die or stand still, and what crashed writers leave."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

from tests.e2e.running import kill
from tests.walk.world import PARTS, World

_FROZEN_SECONDS = (2, 15)
_BEGUN_SECONDS = (1, 12)
_BLOCK = 1 << 20


def kill_a_part(world: World, rng: random.Random) -> str:
    """Its process, as the kernel would; the supervisor starts it again."""
    return _killed(world, rng.choice(PARTS))


def kill_two_parts(world: World, rng: random.Random) -> str:
    """At the same moment."""
    return ", ".join(_killed(world, part) for part in rng.sample(PARTS, 2))


def kill_a_child(world: World, rng: random.Random) -> str:
    """A process that a part started: the JVM of the streams, a backend of PostgreSQL."""
    part = rng.choice(PARTS)
    pid = world.running.part(part).pid
    if not pid:
        return f"{part} does not run"
    with suppress(psutil.NoSuchProcess):
        children = psutil.Process(pid).children(recursive=True)
        if children:
            chosen = rng.choice(sorted(children, key=lambda one: one.pid))
            name = chosen.name()
            kill(chosen.pid)
            return f"{part}: {name}"
    return f"{part} has none"


def freeze_a_part(world: World, rng: random.Random) -> str:
    """All of its processes stand still, and go on."""
    part, seconds = rng.choice(PARTS), rng.uniform(*_FROZEN_SECONDS)
    if not world.running.part(part).pid:
        return f"{part} does not run"
    with suppress(psutil.NoSuchProcess), world.running.standing_still(part):
        time.sleep(seconds)
    return f"{part} for {seconds:.1f} s"


def kill_a_refresh(world: World, rng: random.Random) -> str:
    """The command dies in the middle; the next one goes on."""
    return _killed_command(world, rng, "refresh", rng.choice(world.views), "--force")


def kill_a_replay(world: World, rng: random.Random) -> str:
    """The same of a replay; who asks for it again goes on with it."""
    view = rng.choice(world.views)
    reason = ("--reason", "a step of the random walk")
    return _killed_command(world, rng, "replay", "views", view, "--run", *reason)


def fill_the_disk(world: World, rng: random.Random) -> str:
    """No writer of the lake gets on, until there is room again."""
    if not world.small_disk:
        return "the lake has no disk of its own"
    ballast, seconds = Path(world.settings.lake) / ".ballast", rng.uniform(*_FROZEN_SECONDS)
    try:
        with suppress(OSError), ballast.open("wb") as file:
            while True:
                file.write(bytes(_BLOCK))
        time.sleep(seconds)
    finally:
        ballast.unlink(missing_ok=True)
    return f"for {seconds:.1f} s"


def litter(world: World, rng: random.Random) -> str:
    """What a writer leaves that died: half a Parquet file, and a commit that was never renamed."""
    lake = Path(world.settings.lake)
    tables = sorted(one.parent for one in lake.glob("*/*/_delta_log"))
    if not tables:
        return "no table"
    table = rng.choice(tables)
    (table / f"part-00000-{rng.randrange(10**9):09}.snappy.parquet").write_bytes(b"PAR1 half")
    (table / "_delta_log" / f".{rng.randrange(10**6):020}.json.{rng.random()}.tmp").write_text("{")
    return f"{table.parent.name}.{table.name}"


def _killed(world: World, part: str) -> str:
    pid = world.running.part(part).pid
    if not pid:
        return f"{part} does not run"
    with suppress(psutil.NoSuchProcess):
        kill(pid)
    return part


def _killed_command(world: World, rng: random.Random, *words: str) -> str:
    seconds = rng.uniform(*_BEGUN_SECONDS)
    with world.command(*words) as process:
        time.sleep(seconds)
        ended = process.poll()
    return f"{' '.join(words[:3])}: " + ("had ended" if ended is not None else f"{seconds:.1f} s")


FAULTS_DONE: dict[str, Callable[[World, random.Random], str]] = {
    "kill a part": kill_a_part,
    "kill a child": kill_a_child,
    "kill two parts": kill_two_parts,
    "freeze a part": freeze_a_part,
    "kill a refresh": kill_a_refresh,
    "kill a replay": kill_a_replay,
    "fill the disk": fill_the_disk,
    "litter": litter,
}
