"""What each test takes, in the JUnit file of its run; a slow one that nobody gave a reason for.

Judged is what a test takes itself: its call and its own setup. Fixtures that tests share are
recorded apart, with their names. A test is slow when it computes for more than ``LIMIT`` seconds,
its child processes included, or lasts longer than that on a machine that is not overloaded. A slow
test is named at the end of the run. From ``FAILS`` times the limit on it fails the run: a shared
machine may be slower by less than that. With ``--any-duration``, as in the long tier, no test is
judged.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

# By name: tests replace the clock in its module.
from time import monotonic
from typing import Any

import pytest
import yaml

LIMIT = 20.0
FAILS = 5
ANY_DURATION = "--any-duration"
REASONS = Path(__file__).with_name("slow.yml")
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Spent:
    """Seconds on the clock, and CPU-seconds of this process and those below it."""

    wall: float = 0.0
    cpu: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.wall + other.wall, self.cpu + other.cpu)

    def __sub__(self, other: Spent) -> Spent:
        return Spent(self.wall - other.wall, self.cpu - other.cpu)

    def slow(self, load: float) -> bool:
        """Whether a test may not take this long; the load is that of one core."""
        return self.cpu > LIMIT or self.wall > LIMIT * max(1.0, load)


def now() -> Spent:
    """What has been spent so far."""
    return Spent(monotonic(), _cpu_below(os.getpid()))


def _cpu_below(process: int) -> float:
    """CPU-seconds of a process, of children that ended, and of those that run."""
    folder = Path("/proc", str(process))
    # After the name, which may hold spaces and parentheses.
    ticks = _text(folder / "stat").rpartition(")")[2].split()[11:15]
    try:
        threads = list((folder / "task").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        threads = []
    children = [int(child) for one in threads for child in _text(one / "children").split()]
    return sum(map(int, ticks)) / TICKS + sum(map(_cpu_below, children))


def _text(file: Path) -> str:
    """What a file says; nothing where its process or thread has just ended."""
    try:
        return file.read_text("utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def reason_of(test: str, reasons: dict[str, str]) -> str | None:
    """Why a test may be slow: an entry names a test, with or without parameters, or a module."""
    names = (test, test.partition("[")[0], test.partition("::")[0])
    return next((reasons[one] for one in names if one in reasons), None)


class Timing:
    """Measures in the process that runs the tests, judges in the one that reports them."""

    def __init__(self, config: pytest.Config) -> None:
        self.reports = not hasattr(config, "workerinput")
        self.began = self.shared = Spent()
        self.depth = 0
        self.slow: list[tuple[str, Spent]] = []

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self.began, self.shared = now(), Spent()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Generator[None, object, object]:
        if fixturedef.scope == "function":
            return (yield)
        began, self.depth = now(), self.depth + 1
        try:
            return (yield)
        finally:
            self.depth -= 1
            spent = now() - began
            if not self.depth:
                self.shared += spent
                # The test that asked first; the request's own node is a module or the session.
                item = request._pyfuncitem
                item.user_properties.append((f"fixture {fixturedef.argname}", f"{spent.wall:.2f}"))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, object, object]:
        if call.when == "call":
            own = now() - self.began - self.shared
            load = os.getloadavg()[0] / (os.cpu_count() or 1)
            item.user_properties += [
                ("test", item.nodeid),
                ("own", f"{own.wall:.2f}"),
                ("cpu", f"{own.cpu:.2f}"),
                ("slow", str(own.slow(load))),
            ]
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        found = {name: str(value) for name, value in report.user_properties}
        if self.reports and report.when == "teardown" and found.get("slow") == "True":
            self.slow.append((report.nodeid, Spent(float(found["own"]), float(found["cpu"]))))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if session.config.getoption(ANY_DURATION):
            self.slow = []
        reasons = yaml.safe_load(REASONS.read_text("utf-8"))
        self.slow = [one for one in self.slow if reason_of(one[0], reasons) is None]
        failing = any(max(one.cpu, one.wall) > FAILS * LIMIT for _, one in self.slow)
        if failing and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.slow:
            terminalreporter.section(f"slower than {LIMIT:.0f} s", red=True)
            for test, spent in self.slow:
                line = f"{test}: {spent.wall:.0f} s, {spent.cpu:.0f} CPU-seconds"
                terminalreporter.write_line(line)
            hint = "Make them faster, mark them `long`, or give a reason in tests/slow.yml."
            terminalreporter.write_line(hint)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        ANY_DURATION, action="store_true", help="do not name tests that take long, nor fail"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Timing(config), "timing")
