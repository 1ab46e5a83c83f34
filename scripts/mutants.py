"""A mutation run: small faults in the code that maintains views, and whether a test sees each.

``make mutants`` runs over ``graph/maintenance`` and ``graph/duck``. Each mutant is one change of
one module (a comparison turned round, a condition always true, a number one higher). It is loaded
in a process of its own, and the tests that need only DuckDB and that reach its line run until one
fails. What was found is kept in ``build/mutants.json``, so that a run that is stopped goes on.
"""

from __future__ import annotations

import argparse
import ast
import copy
import hashlib
import importlib
import importlib.abc
import importlib.util
import json
import os
import random
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
STATE = ROOT / "build/mutants.json"
PACKAGES = (
    "spark_jobs/graph/maintenance",
    "spark_jobs/graph/duck",
    "spark_jobs/gold/row_change.py",
)
UNIT_TESTS = tuple(
    f"tests/unit/graph/test_{name}.py"
    for name in ("maintenance", "unique", "ties", "reach", "derived", "described", "obstacle_place")
)
# Loaded before a process is split off, because it takes longest and holds no mutant.
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
# Of processor time: one check, and all checks of one mutant that none of them sees.
SECONDS_OF_CHECK, SECONDS_OF_MUTANT = 10, 15
_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}


@dataclass(frozen=True)
class Mutant:
    """One change of one module.

    Attributes:
        file: below the root.
        line: of the change.
        place: the number of the node in the order of the walk.
        what: what becomes of the node.
        key: tells the mutant apart as long as the module stays as it is.
    """

    file: str
    line: int
    place: int
    what: str
    key: str

    def tree(self) -> ast.Module:
        """The module with the change."""
        tree = ast.parse((ROOT / self.file).read_text(encoding="utf-8"))
        node = list(ast.walk(tree))[self.place]
        new = dict(changes(node))[self.what]
        for parent in ast.walk(tree):
            for name, value in ast.iter_fields(parent):
                if value is node:
                    setattr(parent, name, new)
                elif isinstance(value, list) and any(one is node for one in value):
                    value[:] = [new if one is node else one for one in value]
        return ast.fix_missing_locations(tree)


def changes(  # noqa: C901, PLR0912 - one case for each kind of node
    node: ast.AST,
) -> Iterator[tuple[str, ast.AST]]:
    """What a node may become, by what is said of it."""
    new = copy.deepcopy(node)
    match new:
        case ast.Compare(ops=[operator]) if type(operator) in _COMPARED:
            new.ops = [_COMPARED[type(operator)]()]
            yield f"{ast.unparse(node)} -> {ast.unparse(new)}", new
        case ast.BoolOp():
            new.op = ast.Or() if isinstance(new.op, ast.And) else ast.And()
            yield f"{ast.unparse(node)} -> {ast.unparse(new)}", new
            for at, _ in enumerate(new.values):
                left = [one for other, one in enumerate(new.values) if other != at]
                less = ast.BoolOp(node.op, left) if len(left) > 1 else left[0]  # type: ignore[attr-defined]
                yield f"{ast.unparse(node)} -> {ast.unparse(less)}", less
        case ast.UnaryOp(op=ast.Not()):
            yield f"{ast.unparse(node)} -> {ast.unparse(new.operand)}", new.operand
        case ast.BinOp(op=operation) if type(operation) in _COMPUTED:
            if not any(isinstance(one, ast.JoinedStr) for one in (new.left, new.right)):
                new.op = _COMPUTED[type(operation)]()
                yield f"{ast.unparse(node)} -> {ast.unparse(new)}", new
        case ast.Constant(value=bool() as value):
            yield f"{value} -> {not value}", ast.Constant(not value)
        case ast.Constant(value=int() as value):
            yield f"{value} -> {value + 1}", ast.Constant(value + 1)
        case ast.If(test=ast.Name("TYPE_CHECKING")):
            pass
        case ast.If() | ast.IfExp():
            for truth in (True, False):
                other = copy.deepcopy(new)
                other.test = ast.Constant(truth)
                yield f"if {ast.unparse(new.test)} -> if {truth}", other
        case ast.comprehension(ifs=[_, *_]):
            new.ifs = []
            yield f"for … if {ast.unparse(node.ifs[0])} -> for …", new  # type: ignore[attr-defined]
        case ast.Expr(value=ast.Call()):
            yield f"{ast.unparse(node)} -> pass", ast.Pass()
        case ast.Return(value=ast.Tuple() | ast.Name() | ast.Call() | ast.IfExp()):
            new.value = ast.Constant(None)
            yield f"{ast.unparse(node)} -> return None", new


def mutants(file: str) -> list[Mutant]:
    """All mutants of a module."""
    text = (ROOT / file).read_text(encoding="utf-8")
    tree = ast.parse(text)
    # Annotations are not run, the values of a decorator are settings, ``strict`` is a check.
    silent = {
        id(inner)
        for one in ast.walk(tree)
        for name in ("annotation", "returns", "decorator_list")
        for part in [getattr(one, name, None)]
        for top in (part if isinstance(part, list) else [part] if part else [])
        for inner in ast.walk(top)
    } | {
        id(one.value)
        for one in ast.walk(tree)
        if isinstance(one, ast.keyword) and one.arg == "strict"
    }
    found = []
    for place, node in enumerate(ast.walk(tree)):
        if id(node) in silent:
            continue
        at = node.iter if isinstance(node, ast.comprehension) else node
        line = int(getattr(at, "lineno", 0))
        for what, _ in changes(node):
            key = hashlib.sha256(f"{text}{place}{what}".encode()).hexdigest()[:16]
            found.append(Mutant(file, line, place, what, key))
    return found


class Loader(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads one module with a change."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant
        self.name = mutant.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        del path, target
        if name != self.name:
            return None
        return importlib.util.spec_from_file_location(name, ROOT / self.mutant.file, loader=self)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        del spec
        return None

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.mutant.tree(), self.mutant.file, "exec"), vars(module))  # noqa: S102


def split_off(work: Any) -> Any:
    """What a function gives in a process of its own; None where that process dies."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        with os.fdopen(writing, "w", encoding="utf-8") as pipe:
            pipe.write(json.dumps(work()))
            pipe.flush()
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else None


def covered(known: Sequence[str]) -> dict[str, Any]:
    """For each check that is not known the lines that it reaches, and the seconds that it takes."""
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

    from tests.properties.checks import checks  # noqa: PLC0415

    found = {}
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
    return found


def seen_by(mutant: Mutant, names: Sequence[str]) -> str:
    """The check that fails with a mutant; "" where none does."""

    def too_long(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(number, frame)

    signal.signal(signal.SIGPROF, too_long)
    sys.meta_path.insert(0, Loader(mutant))
    start = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, SECONDS_OF_CHECK)
    try:
        from tests.properties.checks import checks  # noqa: PLC0415

        known = checks()
    except Exception:  # noqa: BLE001 - a module that cannot be loaded is seen
        return "import"
    for name in names:
        if time.process_time() - start > SECONDS_OF_MUTANT:
            break
        signal.setitimer(signal.ITIMER_PROF, SECONDS_OF_CHECK)
        try:
            known[name]()
        except Exception:  # noqa: BLE001 - any error is a failed check
            return name
    signal.setitimer(signal.ITIMER_PROF, 0)
    import pytest  # noqa: PLC0415

    options = ["-x", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "--timeout=120"]
    return "tests/unit/graph" if pytest.main([*UNIT_TESTS, *options]) else ""


def main() -> int:
    """Run the mutants that have no result yet, and print the score."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sample", type=int, default=0, help="only so many, drawn by the seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=80, help="stop after; run again to go on")
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
    print(f"{len(chosen)} mutants")
    for name in BEFORE:
        importlib.import_module(name)
    mutated = {one.removesuffix(".py").replace("/", ".") for one in files}
    if mutated & sys.modules.keys():
        raise SystemExit("a module is loaded that is to be changed")
    state = json.loads(STATE.read_text()) if STATE.exists() else {"results": {}}
    reached = reached_by(state)
    run(chosen, state, reached, time.monotonic() + 60 * options.minutes)
    return report(chosen, state["results"])


def reached_by(state: dict[str, Any]) -> dict[str, Any]:
    """The lines that the checks reach, measured anew when the code has changed."""
    paths = [one for package in PACKAGES for one in modules(package)]
    version = hashlib.sha256(b"".join(one.read_bytes() for one in paths)).hexdigest()
    if state.get("version") != version:
        state |= {"version": version, "reached": {}}
    found = split_off(lambda: covered(list(state["reached"])))
    if found is None:
        raise SystemExit("a check fails without any mutant: run tests/properties")
    state["reached"] |= found
    write(state)
    return dict(state["reached"])


def modules(package: str) -> list[Path]:
    """The modules of a package, or one module."""
    path = ROOT / package
    return [path] if package.endswith(".py") else sorted(path.glob("*.py"))


def run(
    chosen: Sequence[Mutant], state: dict[str, Any], reached: dict[str, Any], until: float
) -> None:
    """Try each mutant; checks that saw a mutant of the same module come first."""
    kills: Counter[tuple[str, str]] = Counter()
    for number, mutant in enumerate(chosen, 1):
        if mutant.key in state["results"]:
            continue
        if time.monotonic() > until:
            return
        names = [
            n for n, one in reached.items() if mutant.line in one["lines"].get(mutant.file, ())
        ]
        names.sort(key=lambda n: (-kills[mutant.file, n], reached[n]["seconds"]))
        by = split_off(lambda m=mutant, n=names: seen_by(m, n))
        by = "crash" if by is None else by
        kills[mutant.file, by] += 1
        state["results"][mutant.key] = {"by": by, "checks": len(names)}
        write(state)
        if not by:
            print(
                f"{number}: {mutant.file}:{mutant.line} ({len(names)}): {mutant.what}", flush=True
            )


def write(state: dict[str, Any]) -> None:
    """Keep what is known."""
    STATE.parent.mkdir(exist_ok=True)
    new = STATE.with_suffix(".new")
    new.write_text(json.dumps(state))
    new.replace(STATE)


def report(chosen: Sequence[Mutant], results: dict[str, Any]) -> int:
    """Print the score by module; 0 where every mutant has a result."""
    tried: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    for one in chosen:
        if one.key in results:
            tried[one.file] += 1
            seen[one.file] += bool(results[one.key]["by"])
    for file in sorted(tried):
        print(f"{seen[file]:5} of {tried[file]:5}  {file}")
    total = sum(tried.values())
    print(f"{sum(seen.values())} of {total} seen, {len(chosen) - total} left to try")
    for one in chosen:
        if one.key in results and not results[one.key]["by"]:
            print(f"  {one.file}:{one.line}: {one.what}")
    return 0 if total == len(chosen) else 2


if __name__ == "__main__":
    sys.exit(main())
