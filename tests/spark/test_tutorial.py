"""The tutorial, all of it: what it shows is what its commands print."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.tutorial import run


def test_the_tutorial(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The commands share the run's one session.
    for name in ("open_session", "driver_session"):
        monkeypatch.setattr(f"spark_jobs.storage.session.{name}", lambda *_, **__: spark)
    monkeypatch.setattr(spark, "stop", lambda: None)
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "200")

    ran = [line for line, _ in run(tmp_path / "shop")]

    assert ran[-1] == "tidemark validate"
    assert len(ran) == 16
