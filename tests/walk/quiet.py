"""A quiet point: everything serves again, everything arrived, and nothing differs."""

from __future__ import annotations

import json
import time

from tests.e2e import oracle
from tests.e2e.soundness import assert_sound, wait_drained
from tests.walk.world import PARTS, World

READY_SECONDS = 600
GREEN_SECONDS = 300
# Of the small stack at its default settings, with room for a session of each command.
MOST_GIB = 14


def settle(world: World) -> dict[str, float]:
    """Wait until the stack is quiet, and compare all that is promised.

    Returns:
        how many seconds it took until the parts served, all had arrived, and all was compared; and
        the memory of the stack in GiB.

    Raises:
        AssertionError: something differs, or does not come back.
    """
    began = time.monotonic()
    stack = world.running
    stack.wait_ready(*PARTS, seconds=READY_SECONDS)
    served = time.monotonic()
    wait_drained(stack, world.shop)
    arrived = time.monotonic()
    for view in sorted(world.pinned):
        code, said = world.tidemark("release", view)
        assert code == 0, said
        world.pinned.discard(view)
    code, said = world.tidemark("refresh", "--all", "--let-pass", "a quiet point of the walk")
    assert code == 0, said
    assert_sound(stack)
    _sinks(world)
    _green(world)
    assert world.orphans() == []
    memory = world.memory_gib()
    assert memory < MOST_GIB
    return {
        "serves": served - began,
        "arrived": arrived - served,
        "compared": time.monotonic() - arrived,
        "gib": memory,
    }


def _sinks(world: World) -> None:
    """Each sink has what its table has."""

    def caught_up() -> bool:
        code, said = world.tidemark("sink", "status", "--json")
        return code == 0 and all(
            one["versions_behind"] == 0 and one["state"] == "running" for one in json.loads(said)
        )

    oracle.wait_until(caught_up, seconds=GREEN_SECONDS, what="the sinks caught up")
    code, said = world.tidemark("sink", "verify")
    assert code == 0, said


def _green(world: World) -> None:
    """Nobody on call would hear of anything but a column that nobody declared."""
    last = ""

    def green() -> bool:
        nonlocal last
        _, last = world.tidemark("status", "--check")
        wrong = [line for line in last.splitlines() if "docs/runbooks" in line]
        return all("schema-drift" in line for line in wrong)

    try:
        oracle.wait_until(green, seconds=GREEN_SECONDS, what="status finds nothing")
    except AssertionError as error:
        raise AssertionError(f"{error}: {last}") from error
