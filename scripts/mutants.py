"""Mutation testing of the code that maintains views.

``make mutants`` runs over ``graph/maintenance`` and ``graph/duck``. Each mutant is one change of
one module (a reversed comparison, a condition that is always true, a number one higher). It is
loaded in its own process, and the tests that need only DuckDB and reach its line run until one
fails. Results are stored in ``build/mutants.json``, so that an interrupted run can continue.

Mutants in ``tests/equivalent.yml`` are not run: the file says why no test can detect them.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import random
import select
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, TextIO

import yaml
from faults import ROOT, Loader, Mutant, mutants

EQUIVALENT = ROOT / "tests/equivalent.yml"
STATE = ROOT / "build/mutants.json"
PACKAGES = (
    "spark_jobs/graph/maintenance",
    "spark_jobs/graph/duck",
    "spark_jobs/gold/compute/row_change.py",
)
UNIT_TESTS = tuple(
    f"tests/unit/graph/test_{name}.py"
    for name in (
        "maintenance",
        "unique",
        "ties",
        "reach",
        "derived",
        "distinct",
        "eager",
        "described",
        "obstacle_place",
        "whole_view",
        "duck_numbers",
        "tie_breakers",
    )
)
# Imported before forking, because it is slow and contains no mutant.
BEFORE = (
    "duckdb",
    "deltalake",
    "pyarrow.compute",
    "pytest",
    "sqlglot.optimizer.qualify",
    "spark_jobs.graph.manifest",
    "spark_jobs.graph.resolve",
    "spark_jobs.storage.tables",
)
# Limits of CPU time: for one check, and for all checks of a mutant that survives.
SECONDS_OF_CHECK, SECONDS_OF_MUTANT = 10, 15
# The check of what is read takes seconds, and sees changes that alter no row: after a few others.
READS, BEFORE_READS = "golden: reads", 12


@dataclass(frozen=True)
class Child:
    """A forked process.

    Attributes:
        pipe: gets the process's result as JSON; empty if it dies.
    """

    process: int
    pipe: TextIO

    def result(self) -> Any:
        """Wait for the process; None if it died."""
        with self.pipe:
            text = self.pipe.read()
        os.waitpid(self.process, 0)
        return json.loads(text) if text else None


def split_off(work: Callable[[], Any]) -> Child:
    """Run a function in a forked process."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reading)
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        with os.fdopen(writing, "w", encoding="utf-8") as pipe:
            pipe.write(json.dumps(work()))
            pipe.flush()
            os._exit(0)
    os.close(writing)
    return Child(process, os.fdopen(reading, encoding="utf-8"))


def covered(known: Sequence[str]) -> dict[str, Any]:
    """For each new check the lines that it reaches, its duration in seconds, and its SQL.

    ``written`` is what the code makes of a check's query, if it has one.
    """
    lines: dict[str, set[int]] = defaultdict(set)
    names: dict[CodeType, str | None] = {}

    def at_call(frame: FrameType, event: str, argument: Any) -> Any:
        del event, argument
        code = frame.f_code
        if code not in names:
            path = code.co_filename.removeprefix(f"{ROOT}/")
            names[code] = path if path.startswith(PACKAGES) else None
        return at_line if names[code] else None

    def at_line(frame: FrameType, event: str, argument: Any) -> Any:
        del event, argument
        lines[names[frame.f_code] or ""].add(frame.f_lineno)
        return at_line

    from tests.properties.checks import checks, queries, written  # noqa: PLC0415

    found = {}
    of_checks = queries()
    for name, check in checks().items():
        if name in known:
            continue
        lines.clear()
        start = time.process_time()
        sys.settrace(at_call)
        try:
            check()
        finally:
            sys.settrace(None)
        seconds = time.process_time() - start
        found[name] = {
            "seconds": seconds,
            "lines": {file: sorted(of) for file, of in lines.items()},
        }
        if query := of_checks.get(name):
            found[name] |= {"query": query, "written": written(query)}
    return found


def promising(
    names: Sequence[str], reached: dict[str, Any], written: Callable[[str], str]
) -> Iterator[str]:
    """The checks, those first of whose queries a mutant makes other SQL.

    Args:
        names: the checks, in order.
        reached: what is known of each.
        written: what the mutant makes of a query.
    """
    of_queries = [name for name in names if "query" in reached[name]]
    first: list[str] = []
    for name in of_queries:
        if written(reached[name]["query"]) != reached[name]["written"]:
            first.append(name)
            yield name
            if len(first) == BEFORE_READS and READS in names:
                yield READS
    if 0 < len(first) < BEFORE_READS and READS in names:
        yield READS
    tried = {*first, READS} if first else set()
    others = [name for name in names if name not in of_queries]
    yield from (name for name in (*others, *of_queries) if name not in tried)


def seen_by(
    mutant: Mutant, names: Sequence[str], reached: dict[str, Any], *, hasty: bool = True
) -> str:
    """The check that fails with a mutant; "" if none does.

    Args:
        mutant: the change.
        names: the checks, in order.
        reached: what is known of each.
        hasty: whether to stop after ``SECONDS_OF_MUTANT``.
    """

    def too_long(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(number, frame)

    signal.signal(signal.SIGPROF, too_long)
    sys.meta_path.insert(0, Loader(mutant))
    start = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, SECONDS_OF_CHECK)
    try:
        from tests.properties.checks import checks, written  # noqa: PLC0415

        known = checks()
    except Exception:  # noqa: BLE001 - a module that cannot be loaded is seen
        return "import"

    def timed(query: str) -> str:
        signal.setitimer(signal.ITIMER_PROF, SECONDS_OF_CHECK)
        return written(query)

    for name in promising(names, reached, timed):
        if hasty and time.process_time() - start > SECONDS_OF_MUTANT:
            break
        signal.setitimer(signal.ITIMER_PROF, SECONDS_OF_CHECK)
        try:
            known[name]()
        except Exception:  # noqa: BLE001 - any error is a failed check
            return name
    signal.setitimer(signal.ITIMER_PROF, 0)
    return "tests/unit/graph" if unit_tests() else ""


def unit_tests() -> int:
    """Run the unit tests; returns pytest's exit status."""
    import pytest  # noqa: PLC0415

    options = ["-x", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "--timeout=120"]
    return int(pytest.main([*UNIT_TESTS, *options]))


def require_unit_tests() -> None:
    """Check that they pass now: otherwise they would seem to detect every mutant."""
    if split_off(unit_tests).result() != 0:
        raise SystemExit("a unit test fails without any mutant: run tests/unit/graph")


def main() -> int:
    """Run the mutants that have no result yet, and print the score."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sample", type=int, default=0, help="only so many, drawn by the seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=80, help="stop after; run again to go on")
    parser.add_argument("--workers", type=int, default=2, help="mutants at the same time")
    parser.add_argument(
        "--again", action="store_true", help="try with all checks those that nobody saw"
    )
    parser.add_argument("files", nargs="*", help="only modules whose path holds one of these")
    options = parser.parse_args()
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    os.nice(1)
    files = [str(one.relative_to(ROOT)) for package in PACKAGES for one in modules(package)]
    chosen = [m for f in files for m in mutants(f)]
    if options.files:
        chosen = [m for m in chosen if any(part in m.file for part in options.files)]
    if options.sample:
        chosen = random.Random(options.seed).sample(  # noqa: S311 - a sample
            chosen, min(options.sample, len(chosen))
        )
    listed = yaml.safe_load(EQUIVALENT.read_text("utf-8"))
    explained = [m for m in chosen if any(map(m.is_meant_by, listed.get(m.file, ())))]
    chosen = [m for m in chosen if m not in explained]
    print(f"{len(chosen)} mutants, and {len(explained)} that are equivalent")
    for name in BEFORE:
        importlib.import_module(name)
    mutated = {one.removesuffix(".py").replace("/", ".") for one in files}
    if mutated & sys.modules.keys():
        raise SystemExit("a module is loaded that is to be changed")
    state = json.loads(STATE.read_text()) if STATE.exists() else {"results": {}}
    reached = reached_by(state)
    require_unit_tests()
    if options.again:
        for one in chosen:
            known = state["results"].get(one.key)
            if known and not known["by"] and known.get("tests") != tests():
                state["results"].pop(one.key)
    until = time.monotonic() + 60 * options.minutes
    run(chosen, state, reached, until, workers=options.workers, hasty=not options.again)
    return report(chosen, state["results"], explained=len(explained))


def reached_by(state: dict[str, Any]) -> dict[str, Any]:
    """The lines that the checks reach; measured again if the code has changed."""
    paths = [one for package in PACKAGES for one in modules(package)]
    version = hashlib.sha256(b"".join(one.read_bytes() for one in paths)).hexdigest()
    if state.get("version") != version:
        state |= {"version": version, "reached": {}}
    found = split_off(lambda: covered(list(state["reached"]))).result()
    if found is None:
        raise SystemExit("a check fails without any mutant: run tests/properties")
    state["reached"] |= found
    write(state)
    return dict(state["reached"])


@cache
def tests() -> str:
    """A digest of the tests that a mutant was run with."""
    files = [*sorted(Path(ROOT, "tests/properties").glob("*.py"))]
    others = ("spark/duck_expressions.py", "golden/duck_values.txt", "golden/rule_reads.txt")
    files += [ROOT / one for one in (*UNIT_TESTS, *(f"tests/{name}" for name in others))]
    return hashlib.sha256(b"".join(one.read_bytes() for one in files)).hexdigest()[:16]


def modules(package: str) -> list[Path]:
    """The modules of a package, or one module."""
    path = ROOT / package
    return [path] if package.endswith(".py") else sorted(path.glob("*.py"))


def run(
    chosen: Sequence[Mutant],
    state: dict[str, Any],
    reached: dict[str, Any],
    until: float,
    *,
    workers: int,
    hasty: bool,
) -> None:
    """Run each mutant; checks that detected another mutant of the module come first."""
    kills: Counter[tuple[str, str]] = Counter()
    waiting = [m for m in chosen if m.key not in state["results"]]
    running: dict[TextIO, tuple[Mutant, int, Child]] = {}
    while running or (waiting and time.monotonic() < until):
        while waiting and len(running) < workers and time.monotonic() < until:
            mutant = waiting.pop(0)
            names = reaching(mutant, reached)
            names.sort(key=lambda n, f=mutant.file: (-kills[f, n], reached[n]["seconds"]))
            child = split_off(lambda m=mutant, n=names: seen_by(m, n, reached, hasty=hasty))
            running[child.pipe] = (mutant, len(names), child)
        for pipe in select.select(list(running), [], [])[0]:
            mutant, checks, child = running.pop(pipe)
            by = child.result()
            by = "crash" if by is None else by
            kills[mutant.file, by] += 1
            state["results"][mutant.key] = {"by": by, "checks": checks}
            if not hasty:
                state["results"][mutant.key]["tests"] = tests()
            write(state)
            if not by:
                print(f"{mutant.file}:{mutant.line} ({checks}): {mutant.what}", flush=True)


def reaching(mutant: Mutant, reached: dict[str, Any]) -> list[str]:
    """The checks that reach a mutant's line, or its module if the line only runs at import."""
    found = {name: of for name, one in reached.items() if (of := one["lines"].get(mutant.file))}
    near = [name for name, lines in found.items() if mutant.line in lines]
    return [*found] if mutant.at_import or not near else near


def write(state: dict[str, Any]) -> None:
    """Store the results."""
    STATE.parent.mkdir(exist_ok=True)
    new = STATE.with_suffix(".new")
    new.write_text(json.dumps(state))
    new.replace(STATE)


def report(chosen: Sequence[Mutant], results: dict[str, Any], *, explained: int) -> int:
    """Print the score by module; returns 0 if every mutant has a result."""
    tried: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    for one in chosen:
        if one.key in results:
            tried[one.file] += 1
            seen[one.file] += bool(results[one.key]["by"])
    for file in sorted(tried):
        print(f"{seen[file]:5} of {tried[file]:5}  {file}")
    total = sum(tried.values())
    detected = sum(seen.values())
    print(
        f"{detected} detected, {explained} explained, {total - detected} survived, "
        f"{len(chosen) - total} left to try"
    )
    for one in chosen:
        if one.key in results and not results[one.key]["by"]:
            print(f"  {one.file}:{one.line}: {one.what}")
    return 0 if total == len(chosen) else 2


if __name__ == "__main__":
    sys.exit(main())
