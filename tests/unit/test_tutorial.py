"""The tutorial without a JVM: its files, its mistakes, and what would be applied."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tutorial import run

NEEDS_A_JVM = {"apply", "query", "refresh"}


def test_the_tutorial_without_a_jvm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "200")
    # A contract holds once it is applied; tests/spark runs the page to its end.
    steps = run(tmp_path / "shop", without=NEEDS_A_JVM, until="A contract")
    ran = [line for line, _ in steps]

    assert ran.count("tidemark validate") == 3
    assert ran[-2:] == ["tidemark seed", "tidemark seed"]
