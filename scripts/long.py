"""The long tier of the tests: ``make test-long``, before a release.

It takes hours, so it is split into runs: each runs the parts that fit into its minutes and have not
passed at this commit. A file records the passed parts. A run ends when the files change. The exit
status is 0 if nothing is left, 1 if a part failed, 2 if another run is needed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
STATE = ROOT / "build/long.json"
DURATIONS = "build/durations"
FAILED, LEFT = 1, 2


@dataclass(frozen=True)
class Part:
    """A unit that passes or fails as a whole.

    Attributes:
        minutes: its duration on two cores; decides whether it fits into a run.
        environment: additional variables.
    """

    name: str
    minutes: int
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


def tests(name: str, minutes: int, *options: str, **environment: str) -> Part:
    """A part that runs pytest and writes a file with durations."""
    durations = f"--junitxml={DURATIONS}/long-{name}.xml"
    command = (".venv/bin/pytest", durations, "--any-duration", *options)
    return Part(name, minutes, command, environment)


def target(name: str, minutes: int, **environment: str) -> Part:
    """A part that runs a target of the Makefile."""
    return Part(name, minutes, ("make", "--no-print-directory", name), environment)


def parts(seed: int) -> list[Part]:
    """All parts; the seed is for those with random cases."""
    workers = ("-n", os.environ.get("WORKERS", "2"))
    random_cases = {
        "TIDEMARK_PROPERTY_SEED": str(seed),
        "TIDEMARK_PROPERTY_CASES": "2000",
        "HYPOTHESIS_PROFILE": "long",
    }
    return [
        tests("unit", 5, "-m", "(unit or airflow) and long", *workers),
        # The TPC-H queries are a separate part.
        tests(
            "spark",
            12,
            *("-m", "spark and long", "--ignore=tests/tpch", *workers, "--dist", "worksteal"),
        ),
        tests("e2e", 75, "-m", "services and long", "--timeout=1800", "-p", "no:randomly"),
        # The only end-to-end tests that `make test` runs without security.
        tests("e2e-secured", 3, "tests/e2e/test_topic_faults.py", TOPICS_SECURED="1"),
        tests(
            "properties",
            45,
            "tests/properties",
            "--timeout=5000",
            f"--hypothesis-seed={seed}",
            *workers,
            **random_cases,
        ),
        target("mutants", 80, OPTIONS=f"--sample 1000 --seed {seed} --minutes 75"),
        target("test-tpch", 3),
        target("e2e-cassandra", 2),
        target("e2e-s3", 17),
        target("e2e-cluster", 22),
        target("bench-kills", 12),
        target("walk", 18, OPTIONS=f"--seed {seed}"),
    ]


def tree() -> str:
    """The current commit, and uncommitted differences."""

    def git(*options: str) -> bytes:
        return subprocess.run(["git", *options], cwd=ROOT, check=True, capture_output=True).stdout

    commit = git("rev-parse", "HEAD").decode().strip()
    # A part that measures writes its report.
    sources = ("--", ".", ":!benchmarks/results", ":!docs/benchmarks")
    changed = git("diff", "HEAD", *sources)
    changed += git("ls-files", "--others", "--exclude-standard", *sources)
    return f"{commit}+{hashlib.sha256(changed).hexdigest()[:12]}" if changed else commit


def passed(commit: str) -> dict[str, Any]:
    """The parts that passed at this commit."""
    if not STATE.is_file():
        return {}
    found = json.loads(STATE.read_text("utf-8"))
    return dict(found["passed"]) if found["commit"] == commit else {}


def record(commit: str, name: str, result: dict[str, Any] | None) -> dict[str, Any]:
    """Store that a part passed, or with None that it did not; returns the parts that passed.

    Another run may have stored parts since this one began.
    """
    done = passed(commit)
    done.pop(name, None)
    if result is not None:
        done[name] = result
    STATE.parent.mkdir(parents=True, exist_ok=True)
    STATE.write_text(json.dumps({"commit": commit, "passed": done}, indent=1), "utf-8")
    return done


def ended_well(part: Part) -> bool:
    """Run a part; whether it passed."""
    environment = {**os.environ, **part.environment}
    return subprocess.run(part.command, cwd=ROOT, env=environment, check=False).returncode == 0


def arguments() -> argparse.Namespace:
    """The command line's arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="*", help="these parts, also where they passed before")
    parser.add_argument("--minutes", type=float, default=85, help="what this run may take")
    parser.add_argument("--seed", type=int, help="of the random cases; a fresh one by default")
    parser.add_argument("--list", action="store_true", help="show what is left and run nothing")
    return parser.parse_args()


def main() -> int:
    """Run what fits; returns the exit status."""
    wanted, commit = arguments(), tree()
    seed = wanted.seed if wanted.seed is not None else random.SystemRandom().randrange(10**6)
    everything, done = parts(seed), passed(commit)
    names = [part.name for part in everything]
    if unknown := sorted(set(wanted.only) - set(names)):
        print(f"long: no such part: {', '.join(unknown)}; there are {', '.join(names)}")
        return FAILED
    began, ran, failed = time.monotonic(), 0, []
    for part in everything:
        open_part = part.name in wanted.only if wanted.only else part.name not in done
        used = (time.monotonic() - began) / 60
        # The first always runs, because a part may take longer than the limit of a run.
        if wanted.list or not open_part or (ran and used + part.minutes > wanted.minutes):
            continue
        print(f"long: {part.name}, about {part.minutes} minutes, seed {seed}", flush=True)
        started, ran = time.monotonic(), ran + 1
        passes = ended_well(part)
        if tree() != commit:
            # It ran partly on other files, and so would the next ones.
            print(f"long: files changed during {part.name}, which is not recorded", flush=True)
            failed += [] if passes else [part.name]
            break
        if passes:
            seconds = round(time.monotonic() - started)
            done = record(commit, part.name, {"seconds": seconds, "seed": seed})
        else:
            done = record(commit, part.name, None)
            failed.append(part.name)
    left = [name for name in names if name not in done]
    print(f"long: passed at {commit[:12]}: {', '.join(done) or 'nothing'}")
    print(f"long: left: {', '.join(left) or 'nothing'}")
    if failed:
        print(f"long: failed, seed {seed}: {', '.join(failed)}")
        return FAILED
    return LEFT if left else 0


if __name__ == "__main__":
    sys.exit(main())
