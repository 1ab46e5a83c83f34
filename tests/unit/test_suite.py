"""The suite's own rules: what is slow has a reason, and the long tier goes on where it stopped."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import yaml

from spark_jobs.gold.environment import copies
from spark_jobs.gold.recover import release, rollback
from spark_jobs.gold.refresh.steps import FAILPOINTS, KEPT_FAILPOINTS
from spark_jobs.rollout import apply, environments, promotion
from spark_jobs.settings import REPOSITORY
from tests import stacks, timing
from tests.conftest import LONGEST, MARKS, place_of
from tests.timing import Spent, reason_of

pytest_plugins = ["pytester"]

ASLEEP = """
import time
import pytest

@pytest.fixture(scope="module")
def shared():
    time.sleep(0.3)

@pytest.mark.parametrize("seconds", [0, 0.3])
def test_sleep(shared, seconds):
    time.sleep(seconds)
"""


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, REPOSITORY / f"scripts/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look up the module in which they are defined.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("spent", "load", "slow"),
    [
        (Spent(wall=19, cpu=19), 0, False),
        (Spent(wall=21, cpu=0), 0.5, True),
        # Others were busy: what it computed itself decides.
        (Spent(wall=21, cpu=0), 2, False),
        (Spent(wall=41, cpu=0), 2, True),
        (Spent(wall=21, cpu=21), 9, True),
    ],
)
def test_a_test_is_slow_by_its_time_and_the_load(spent: Spent, load: float, slow: bool) -> None:
    assert spent.slow(load) is slow


def test_the_lanes_name_every_folder_of_their_mark() -> None:
    lanes = re.findall(r"call lane,(\w+),([\w ]+)\)", (REPOSITORY / "Makefile").read_text())
    named = {(folder, mark) for mark, folders in lanes for folder in folders.split()}
    marks = {mark for mark, _ in lanes}
    expected = {(folder, mark) for folder, mark in MARKS.items() if mark in marks}
    # A property that needs no Spark is a unit test.
    assert named == expected | {("properties", "unit")}
    assert len(marks) == 4


def test_seconds_of_children_that_run_count() -> None:
    before = timing.now()
    with subprocess.Popen(["python3", "-c", "while True: pass"]) as child:
        try:
            while (timing.now() - before).cpu < 0.2:
                assert (timing.now() - before).wall < 60
        finally:
            child.kill()


@pytest.mark.parametrize(
    ("reasons", "more", "code"),
    [
        ("{}", [], pytest.ExitCode.TESTS_FAILED),
        ("test_what.py::test_sleep: waits", [], pytest.ExitCode.OK),
        ("test_what.py::test_sleep[0]: waits", [], pytest.ExitCode.TESTS_FAILED),
        ("{}", [timing.ANY_DURATION], pytest.ExitCode.OK),
    ],
)
def test_a_slow_test_without_a_reason_fails_the_run(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    reasons: str,
    more: list[str],
    code: pytest.ExitCode,
) -> None:
    listed, file = pytester.path / "slow.yml", pytester.path / "build/durations/some.xml"
    listed.write_text(reasons, "utf-8")
    pytester.makepyfile(test_what=ASLEEP)
    options = ("-p", "tests.timing", "-p", "no:randomly", f"--junitxml={file}", *more)
    # For the run within only: this one is measured too.
    with monkeypatch.context() as patch:
        patch.setattr(timing, "LIMIT", 0.2)
        patch.setattr(timing, "FAILS", 1)
        patch.setattr(timing, "REASONS", listed)
        patch.setattr(timing.os, "getloadavg", lambda: (0.0, 0.0, 0.0))
        found = pytester.runpytest_inprocess(*options)
    assert found.ret == code
    listing = "test_what.py::test_sleep[[]0.3[]]: 0 s, * CPU-seconds"
    if code:
        found.stdout.fnmatch_lines([listing])
    else:
        found.stdout.no_fnmatch_line(listing)

    lane = script("durations").read(file)
    assert set(lane.own) == {"test_what.py::test_sleep[0]", "test_what.py::test_sleep[0.3]"}
    assert lane.own["test_what.py::test_sleep[0]"] < 0.2
    [shared] = lane.fixtures["shared"]
    assert shared >= 0.3


def asked_for(source: str) -> set[str]:
    """The fixtures that a module may ask for: arguments of functions, and parameters' names."""
    nodes = list(ast.walk(ast.parse(source)))
    parameters = [one for one in nodes if isinstance(one, ast.keyword) and one.arg == "params"]
    texts = [one for each in parameters for one in ast.walk(each) if isinstance(one, ast.Constant)]
    return {one.arg for one in nodes if isinstance(one, ast.arg)} | {
        str(one.value) for one in texts
    }


def test_tests_of_the_shared_stack_run_in_one_process() -> None:
    modules = (REPOSITORY / "tests/e2e").glob("test_*.py")
    found = {one.stem for one in modules if stacks.SHARED in asked_for(one.read_text("utf-8"))}
    assert set(stacks.FILES) == found


def test_every_reason_names_tests_that_exist() -> None:
    reasons = yaml.safe_load(timing.REASONS.read_text("utf-8"))
    for name in reasons:
        module, _, test = name.partition("::")
        source = (REPOSITORY / module).read_text("utf-8")
        assert f"def {test.partition('[')[0]}" in source, name
    assert reason_of("tests/tpch/test_tpch.py::test_some[q01]", reasons)
    assert reason_of("tests/unit/test_suite.py::test_some", reasons) is None


def test_each_fault_has_a_test_or_a_reason() -> None:
    text = (REPOSITORY / "docs/faults.md").read_text("utf-8")
    rows = dict(
        re.findall(r"^\| ([FB]\d\d(?: to B48, B52)?) \| [^|]+ \| ([^|]+) \|$", text, re.MULTILINE)
    )
    faults = [f"F{number:02}" for number in range(1, 49)]
    assert list(rows) == [*faults, "B01 to B48, B52", "B49", "B50", "B51"]
    page = (REPOSITORY / "docs/bad-input.md").read_text("utf-8")
    assert {f"B{number:02}" for number in range(1, 49)} <= set(
        re.findall(r"^\| (B\d\d) ", page, re.MULTILINE)
    )
    for row in rows.values():
        named = re.findall(r"`(tests/\S+)`", row)
        for one in named:
            module, _, test = one.partition("::")
            assert f"def {test}(" in (REPOSITORY / module).read_text("utf-8"), one
        assert named or "`make " in row or "not tested" in row or "F32" in row, row


def test_modules_that_take_longest_begin_first() -> None:
    assert len(LONGEST) > 1
    assert len(set(LONGEST)) == len(LONGEST)
    assert [one for one in LONGEST if not (REPOSITORY / one).is_file()] == []
    names = ["tests/unit/test_suite.py", LONGEST[1], "tests/dags/test_runs.py", LONGEST[0]]
    items = [SimpleNamespace(nodeid=f"{name}::test_some[a::b]") for name in names]
    found = [item.nodeid.partition("::")[0] for item in sorted(items, key=place_of)]
    assert found == [*LONGEST[:2], names[0], names[2]], "others stay as they were shuffled"


def test_the_long_tier_continues_where_it_stopped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long, ran, fails = script("long"), tmp_path / "ran", tmp_path / "fails"
    fails.touch()

    def part(name: str, minutes: int, after: str = "true") -> object:
        return long.Part(name, minutes, ("sh", "-c", f"echo {name} >> {ran}; {after}"))

    def run(*options: str) -> tuple[int, list[str], str]:
        ran.write_text("", "utf-8")
        monkeypatch.setattr("sys.argv", ["long", *options])
        return long.main(), ran.read_text("utf-8").split(), capsys.readouterr().out

    some = [part("a", 2), part("b", 9), part("c", 2, f"! test -e {fails}"), part("d", 1)]
    monkeypatch.setattr(long, "parts", lambda _: some)
    monkeypatch.setattr(long, "STATE", tmp_path / "build/long.json")
    monkeypatch.setattr(long, "tree", lambda: "one")
    code, started, out = run("--minutes", "5", "--seed", "7")
    assert (code, started) == (long.FAILED, ["a", "c", "d"])
    assert "left: b, c" in out
    assert "failed, seed 7: c" in out
    # What is longer than a run starts when nothing ran before it.
    code, started, out = run("--minutes", "1")
    assert (code, started) == (long.LEFT, ["b"])
    fails.unlink()
    code, started, out = run("--minutes", "5")
    assert (code, started) == (0, ["c"])
    assert "left: nothing" in out
    assert run()[:2] == (0, [])
    assert run("a")[1] == ["a"]
    assert run("e")[0] == long.FAILED
    assert json.loads((tmp_path / "build/long.json").read_text("utf-8"))["passed"].keys() == set(
        "abcd"
    )
    # Another commit starts over.
    monkeypatch.setattr(long, "tree", lambda: "two")
    assert run("--list")[0] == long.LEFT
    assert run("--minutes", "5")[1] == ["a", "c", "d"]


@pytest.mark.parametrize("after", ["true", "false"])
def test_a_part_during_which_files_change_is_not_recorded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], after: str
) -> None:
    """It would be evidence for files that it did not see; the next parts would be, too."""
    long, state, changed = script("long"), tmp_path / "build/long.json", tmp_path / "changed"
    some = [
        long.Part("a", 1, ("true",)),
        long.Part("b", 1, ("sh", "-c", f"touch {changed}; {after}")),
        long.Part("c", 1, ("true",)),
    ]
    monkeypatch.setattr(long, "parts", lambda _: some)
    monkeypatch.setattr(long, "STATE", state)
    monkeypatch.setattr(long, "tree", lambda: "two" if changed.exists() else "one")
    monkeypatch.setattr("sys.argv", ["long"])
    assert long.main() == (long.LEFT if after == "true" else long.FAILED)
    out = capsys.readouterr().out
    assert "files changed during b" in out
    assert "left: b, c" in out
    stored = json.loads(state.read_text("utf-8"))
    assert (stored["commit"], list(stored["passed"])) == ("one", ["a"])


def test_every_failpoint_is_armed_by_a_test() -> None:
    passed = {
        name
        for file in Path(REPOSITORY, "spark_jobs").rglob("*.py")
        for name in re.findall(r'failpoint\("([^"]+)"\)', file.read_text("utf-8"))
    }
    assert len(passed) > 30
    files = set(Path(REPOSITORY, "tests").rglob("*.py")) - {Path(__file__)}
    texts = "\n".join(file.read_text("utf-8") for file in files)
    # By name, or as one of a list that a test goes through.
    listed = {*FAILPOINTS, *KEPT_FAILPOINTS}
    listed |= {*apply.FAILPOINTS, *release.FAILPOINTS, *rollback.FAILPOINTS}
    listed |= {*environments.FAILPOINTS, *promotion.FAILPOINTS, *copies.FAILPOINTS}
    assert {name for name in passed - listed if name not in texts} == set()


@pytest.mark.parametrize("status", [pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.USAGE_ERROR])
def test_unit_tests_that_fail_anyway_detect_no_mutant(
    monkeypatch: pytest.MonkeyPatch, status: pytest.ExitCode
) -> None:
    script("faults")
    mutants = script("mutants")
    assert all((REPOSITORY / one).is_file() for one in mutants.UNIT_TESTS)
    monkeypatch.setattr(mutants, "unit_tests", lambda: 0)
    mutants.require_unit_tests()
    monkeypatch.setattr(mutants, "unit_tests", lambda: int(status))
    with pytest.raises(SystemExit, match="without any mutant"):
        mutants.require_unit_tests()


def test_checks_of_queries_that_a_mutant_changes_come_first() -> None:
    script("faults")
    mutants = script("mutants")
    reached = {
        "other": {},
        "same": {"query": "a", "written": "SELECT 1"},
        "changed": {"query": "b", "written": "SELECT 2"},
        mutants.READS: {},
    }
    changed = {"a": "SELECT 1", "b": "SELECT 3"}
    found = list(mutants.promising(list(reached), reached, changed.__getitem__))
    assert found == ["changed", mutants.READS, "other", "same"]
    changed["b"] = "SELECT 2"
    found = list(mutants.promising(list(reached), reached, changed.__getitem__))
    assert found == ["other", mutants.READS, "same", "changed"]


def test_every_mutant_that_is_called_equivalent_exists_and_has_a_reason() -> None:
    mutants = script("faults").mutants
    listed = yaml.safe_load((REPOSITORY / "tests/equivalent.yml").read_text(encoding="utf-8"))
    for file, ones in listed.items():
        known = mutants(file)
        for one in ones:
            # The reason is of all of them, and of none that is written later.
            meant = sum(mutant.is_meant_by(one) for mutant in known)
            assert meant == one.get("times", 1), f"{file}: {one}"
            assert one["why"], f"{file}: {one}"


@pytest.mark.parametrize("module", ["tests.dags.conftest"])
def test_a_module_of_tests_removes_its_directory(module: str, tmp_path: Path) -> None:
    """A directory that is made when a module is imported, before any fixture."""
    code = f"import os, tempfile, {module}; print(os.listdir(tempfile.gettempdir()))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("['tidemark-airflow-")
    assert list(tmp_path.iterdir()) == []
