"""``make durations``: prints the durations of the last test run of each lane.

It reads the JUnit files of the lanes. Durations are summed over worker processes.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET

FOLDER = Path(__file__).resolve().parent.parent / "build/durations"
SHOWN = 12
FIXTURE = "fixture "


@dataclass
class Lane:
    """One run: seconds by test, by module and by shared fixture."""

    name: str
    wall: float
    own: dict[str, float] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)
    fixtures: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def modules(self) -> dict[str, float]:
        """Seconds of each module's tests."""
        found: dict[str, float] = defaultdict(float)
        for test, seconds in self.own.items():
            found[test.partition("::")[0]] += seconds
        return found


def read(file: Path) -> Lane:
    """The content of a lane's file.

    Raises:
        xml.etree.ElementTree.ParseError: it is truncated.
    """
    root = ET.parse(file).getroot()  # noqa: S314 - written by our own run
    suite = root if root.tag == "testsuite" else root[0]
    lane = Lane(file.stem, float(suite.get("time", "0")))
    for case in suite.iter("testcase"):
        found = {one.get("name", ""): one.get("value", "") for one in case.iter("property")}
        for name, value in found.items():
            if name.startswith(FIXTURE):
                lane.fixtures[name.removeprefix(FIXTURE)].append(float(value))
        if "test" in found:
            lane.own[found["test"]] = float(found["own"])
            lane.cpu[found["test"]] = float(found["cpu"])
    return lane


def summary(lanes: list[Lane]) -> list[str]:
    """One line per lane."""
    lines = [f"{'lane':16}{'tests':>8}{'wall s':>10}{'tests s':>10}{'CPU-s':>10}{'fixtures s':>12}"]
    for one in lanes:
        own, cpu = sum(one.own.values()), sum(one.cpu.values())
        fixtures = sum(map(sum, one.fixtures.values()))
        numbers = f"{one.wall:>10.0f}{own:>10.0f}{cpu:>10.0f}{fixtures:>12.0f}"
        lines.append(f"{one.name:16}{len(one.own):>8}{numbers}")
    return lines


def details(lane: Lane) -> list[str]:
    """The slowest tests, modules and fixtures of a lane."""
    lines = ["", f"{lane.name}: slowest tests", f"{'s':>8}{'CPU-s':>8}"]
    slowest = sorted(lane.own, key=lane.own.__getitem__, reverse=True)[:SHOWN]
    lines += [f"{lane.own[test]:>8.1f}{lane.cpu[test]:>8.1f}  {test}" for test in slowest]
    lines += ["", f"{lane.name}: slowest modules", f"{'s':>8}"]
    modules = sorted(lane.modules().items(), key=lambda one: -one[1])[:SHOWN]
    lines += [f"{seconds:>8.1f}  {module}" for module, seconds in modules]
    lines += ["", f"{lane.name}: fixtures that tests share", f"{'s':>8}{'times':>8}"]
    fixtures = sorted(lane.fixtures.items(), key=lambda one: -sum(one[1]))[:SHOWN]
    lines += [f"{sum(taken):>8.1f}{len(taken):>8}  {name}" for name, taken in fixtures]
    return lines


def main() -> int:
    """Print the tables; returns the exit status."""
    lanes = [read(file) for file in sorted(FOLDER.glob("*.xml"))]
    lanes = [lane for lane in lanes if lane.own]
    if not lanes:
        print(f"durations: no run has written {FOLDER}/*.xml yet", file=sys.stderr)
        return 1
    print("\n".join(summary(lanes)))
    for lane in lanes:
        print("\n".join(details(lane)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
