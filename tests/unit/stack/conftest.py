"""Settings of nobody's environment, and the repository's own project, compiled once."""

from __future__ import annotations

import os

import pytest

from tests.shipped import shipped_project


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch):
    for name in [name for name in os.environ if name.startswith("TIDEMARK_")]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def project_manifest():
    return shipped_project()
