"""Marks by folder, so that no test can be unmarked; Hypothesis profiles."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).parent
MARKS = {
    "unit": "unit",
    "golden": "unit",
    "spark": "spark",
    "tpch": "spark",
    "properties": "spark",
    "dags": "airflow",
    "e2e": "services",
}

settings.register_profile("dev", max_examples=25, deadline=None)
settings.register_profile(
    "ci", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if TESTS not in item.path.parents:
            item.add_marker("unit")
            continue
        item.add_marker(MARKS[item.path.relative_to(TESTS).parts[0]])
