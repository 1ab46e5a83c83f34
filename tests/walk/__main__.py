"""``python -m tests.walk`` runs a random walk on its own stack; exits with 1 if a step fails.

``--minutes 10`` sets how long it runs, ``--upto 40`` runs only the first 40 steps of a seed, and
``--shrink`` finds the shortest prefix that still fails, each on a new stack.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tests.walk.capture import CAPTURE_STEPS
from tests.walk.deploys import DEPLOY_STEPS
from tests.walk.faults import FAULT_STEPS
from tests.walk.network import NETWORK_STEPS
from tests.walk.plan import QUIET, Step, prefix, steps
from tests.walk.quiet import settle
from tests.walk.work import ACTION_STEPS
from tests.walk.world import World, new_world

FOLDER = Path("build/walk")
STEPS = ACTION_STEPS | DEPLOY_STEPS | FAULT_STEPS | CAPTURE_STEPS | NETWORK_STEPS


def main() -> int:
    """Run a walk; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--upto", type=int, help="run the first steps and a quiet point")
    parser.add_argument("--shrink", action="store_true", help="bisect a failed walk")
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    print(f"seed {options.seed}", flush=True)
    if options.upto is None:
        failed = run_walk(options.seed, steps(options.seed), minutes=options.minutes)
    else:
        failed = run_walk(options.seed, prefix(options.upto, seed=options.seed))
    if failed is None:
        return 0
    print(f"FAILED at step {failed}; repeat: python -m tests.walk --seed {options.seed} ", end="")
    print(f"--upto {failed}", flush=True)
    if options.shrink:
        print(f"the shortest prefix that fails: {shrink(options.seed, failed)} steps")
    return 1


def run_walk(seed: int, walk: Iterable[Step], *, minutes: float | None = None) -> int | None:
    """Run steps on a new stack; returns the number of the step that failed, or None.

    With ``minutes``, the walk ends at the first quiet point after that time.
    """
    log = (FOLDER / f"{seed}.jsonl").open("a")
    began, counts = time.monotonic(), Counter[str]()
    with log, new_world() as world:
        for step in walk:
            started = time.monotonic()
            try:
                outcome: object = run_step(world, step)
            except Exception:  # noqa: BLE001 - any error ends the walk and is reported
                error = traceback.format_exc()
                print(f"{step.number} {step.name}: {error}", flush=True)
                log_step(log, step, started, failed=error)
                keep_logs(world, seed)
                return step.number
            counts[
                "quiet points" if step.name == QUIET else "faults" if step.is_fault else "actions"
            ] += 1
            log_step(log, step, started, outcome=outcome)
            seconds = time.monotonic() - started
            print(f"{step.number:4} {step.name}: {outcome} ({seconds:.1f} s)", flush=True)
            over = minutes is not None and time.monotonic() - began > minutes * 60
            if over and step.name == QUIET:
                break
    counts["changes and records of loads"] = world.changes
    print(f"seed {seed}: {dict(counts)}, no difference, {time.monotonic() - began:.0f} s")
    return None


def run_step(world: World, step: Step) -> object:
    """Run a step; returns its outcome for the log."""
    if step.name == QUIET:
        return {name: round(value, 1) for name, value in settle(world).items()}
    return STEPS[step.name](world, random.Random(step.seed))


def shrink(seed: int, failed: int) -> int:
    """Bisect for the shortest prefix that fails, each on a new stack.

    The result is only as good as the failure is repeatable: some depend on timing.
    """
    low, high = 0, failed
    while high - low > 1:
        middle = (low + high) // 2
        if run_walk(seed, prefix(middle, seed=seed)) is None:
            low = middle
        else:
            high = middle
    return high


def log_step(log, step: Step, started: float, **facts: object) -> None:  # type: ignore[no-untyped-def]
    """Append a step to the walk's log, as one line of JSON."""
    seconds = round(time.monotonic() - started, 1)
    line = {"step": step.number, "name": step.name, "seconds": seconds, **facts}
    log.write(json.dumps(line) + "\n")
    log.flush()


def keep_logs(world: World, seed: int) -> None:
    """Copy the ends of the parts' logs, because the stack is removed."""
    folder = FOLDER / f"{seed}-logs"
    folder.mkdir(exist_ok=True)
    for path in (world.settings.state / "logs").glob("*.log"):
        (folder / path.name).write_bytes(path.read_bytes()[-200_000:])


if __name__ == "__main__":
    sys.exit(main())
