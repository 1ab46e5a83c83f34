"""A quiet point: all parts are ready, all data has arrived, and no comparison fails."""

from __future__ import annotations

import json
import time

from spark_jobs.serving.source_dsn import source_dsn
from spark_jobs.stack.slot import connector_slot_lost
from tests.e2e import oracle
from tests.e2e.soundness import assert_sound, wait_drained
from tests.walk.world import PARTS, World

READY_SECONDS = 600
SETTLE_SECONDS = 300
# The small stack with default settings, and a session for each command.
MAX_GIB = 14


def settle(world: World) -> dict[str, float]:
    """Wait until the stack is quiet, and compare everything.

    Returns:
        ``ready``, ``arrived`` and ``compared``: the seconds that each phase took; and ``gib``, the
            memory of the stack.

    Raises:
        AssertionError: a part does not become ready, data is missing, or a comparison fails.
    """
    began = time.monotonic()
    stack = world.running
    if world.network:
        world.network.restore()
    stack.wait_ready(*PARTS, seconds=READY_SECONDS)
    ready = time.monotonic()
    reason = ("--reason", "a quiet point of the walk")
    if connector_slot_lost(source_dsn(world.settings)) or _is_stopped(world):
        world.snapshot_again = True
        code, output = world.tidemark("source", "resnapshot", "--run", *reason)
        assert code == 0, output
    # What a step declared while a part was down.
    code, output = world.tidemark("apply", "--yes")
    assert code == 0, output
    if world.snapshot_again:
        code, output = world.tidemark("source", "delete-backfill", "--run", "--let-pass", *reason)
        assert code == 0, output
        world.snapshot_again = False
    wait_drained(stack, world.shop, oracle.kafka_counts)
    arrived = time.monotonic()
    for view in sorted(world.pinned.intersection(world.views)):
        code, output = world.tidemark("release", view)
        assert code == 0, output
    world.pinned.clear()
    code, output = world.tidemark("refresh", "--all", "--let-pass", "a quiet point of the walk")
    assert code == 0, output
    assert_sound(stack)
    _assert_sinks_equal(world)
    _assert_status_passes(world)
    leftover = world.leftover_processes()
    assert not leftover, leftover
    memory = world.memory_gib()
    assert memory < MAX_GIB
    return {
        "ready": ready - began,
        "arrived": arrived - ready,
        "compared": time.monotonic() - arrived,
        "gib": memory,
    }


def _is_stopped(world: World) -> bool:
    """Whether a new snapshot failed halfway, because a part was down; the status names it."""
    _, said = world.tidemark("status", "--check")
    return "is stopped: " in said


def _assert_sinks_equal(world: World) -> None:
    """Each sink equals its table."""

    def caught_up() -> bool:
        code, output = world.tidemark("sink", "status", "--json")
        sinks = json.loads(output) if code == 0 else []
        return bool(sinks) and all(
            one["versions_behind"] == 0 and one["state"] == "running" for one in sinks
        )

    oracle.wait_until(caught_up, seconds=SETTLE_SECONDS, what="the sinks caught up")
    code, output = world.tidemark("sink", "verify")
    assert code == 0, output


def _assert_status_passes(world: World) -> None:
    """``status --check`` reports at most schema drift, which ``alter_table`` causes."""
    last = ""

    def passes() -> bool:
        nonlocal last
        code, last = world.tidemark("status", "--check")
        return passes_but_for_drift(code, last)

    try:
        oracle.wait_until(passes, seconds=SETTLE_SECONDS, what="status finds nothing")
    except AssertionError as error:
        raise AssertionError(f"{error}: {last}") from error


def passes_but_for_drift(code: int, output: str) -> bool:
    """Whether ``status --check`` passed, or failed because of schema drift only."""
    problems = [line for line in output.splitlines() if "docs/runbooks" in line]
    return code == 0 or (bool(problems) and all("schema-drift" in line for line in problems))
