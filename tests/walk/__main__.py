"""``python -m tests.walk``: walk on a stack of its own; ends with 1 where something differed.

``--seed 7 --minutes 10`` walks so long, ``--seed 7 --upto 40`` only the first steps, and
``--shrink`` looks for the shortest prefix that still fails, each on a new stack.
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

from tests.walk.faults import FAULTS_DONE
from tests.walk.plan import QUIET, Step, prefix, steps
from tests.walk.quiet import settle
from tests.walk.work import WORK
from tests.walk.world import World, new_world

FOLDER = Path("build/walk")


def main() -> int:
    """Walk; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--upto", type=int, help="the first steps, and a quiet point")
    parser.add_argument("--shrink", action="store_true", help="bisect a failure of --upto steps")
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    print(f"seed {options.seed}", flush=True)
    if options.upto is None:
        failed = attempt(options.seed, steps(options.seed), minutes=options.minutes)
    else:
        failed = attempt(options.seed, prefix(options.upto, seed=options.seed))
    if failed is None:
        return 0
    print(f"FAILED at step {failed}; again: python -m tests.walk --seed {options.seed} ", end="")
    print(f"--upto {failed}", flush=True)
    if options.shrink:
        print(f"the shortest prefix that fails: {shrink(options.seed, failed)} steps")
    return 1


def attempt(seed: int, walked: Iterable[Step], *, minutes: float | None = None) -> int | None:
    """Walk on a new stack; returns the number of the step that failed, or None.

    A walk that is limited by minutes ends with the first quiet point after them.
    """
    log = (FOLDER / f"{seed}.jsonl").open("a")
    began, done = time.monotonic(), Counter[str]()
    with log, new_world() as world:
        for step in walked:
            started = time.monotonic()
            try:
                outcome: object = take(world, step)
            except Exception:  # noqa: BLE001 - whatever it is, the walk ends here and is told
                problem = traceback.format_exc()
                print(f"{step.number} {step.name}: {problem}", flush=True)
                note(log, step, started, failed=problem)
                keep_logs(world, seed)
                return step.number
            done[
                "quiet points" if step.name == QUIET else "faults" if step.is_fault else "actions"
            ] += 1
            note(log, step, started, outcome=outcome)
            seconds = time.monotonic() - started
            print(f"{step.number:4} {step.name}: {outcome} ({seconds:.1f} s)", flush=True)
            over = minutes is not None and time.monotonic() - began > minutes * 60
            if over and step.name == QUIET:
                break
    print(f"seed {seed}: {dict(done)}, no difference, {time.monotonic() - began:.0f} s")
    return None


def take(world: World, step: Step) -> object:
    """Take a step; returns what it says of itself."""
    if step.name == QUIET:
        return {name: round(value, 1) for name, value in settle(world).items()}
    return {**WORK, **FAULTS_DONE}[step.name](world, random.Random(step.seed))


def shrink(seed: int, failed: int) -> int:
    """The shortest prefix that fails, each tried on a new stack; some failures are of chance."""
    low, high = 0, failed
    while high - low > 1:
        middle = (low + high) // 2
        if attempt(seed, prefix(middle, seed=seed)) is None:
            low = middle
        else:
            high = middle
    return high


def note(log, step: Step, started: float, **said: object) -> None:  # type: ignore[no-untyped-def]
    """Keep a step in the walk's log."""
    seconds = round(time.monotonic() - started, 1)
    line = {"step": step.number, "name": step.name, "seconds": seconds, **said}
    log.write(json.dumps(line) + "\n")
    log.flush()


def keep_logs(world: World, seed: int) -> None:
    """Copy the ends of the parts' logs: the stack is removed."""
    folder = FOLDER / f"{seed}-logs"
    folder.mkdir(exist_ok=True)
    for path in (world.settings.state / "logs").glob("*.log"):
        (folder / path.name).write_bytes(path.read_bytes()[-200_000:])


if __name__ == "__main__":
    sys.exit(main())
