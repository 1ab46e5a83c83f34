"""Stacks for end-to-end tests: one full stack for the whole run, small ones for their own use."""

from __future__ import annotations

import pytest

from spark_jobs.cli.demo import PERIOD, SCHEDULED
from tests.e2e.running import RunningStack, own_settings, remove


@pytest.fixture(scope="session")
def stack():
    """A full stack; tests share it, so each uses names and keys of its own."""
    schedule = {"every_override": PERIOD, "scheduled_at_first": SCHEDULED}
    settings = own_settings(gold=schedule)
    running = RunningStack(settings)
    try:
        running.up()
        yield running
    finally:
        remove(settings)


@pytest.fixture
def small_stack():
    """The settings of a stack that is not up yet and that the test may break."""
    settings = own_settings()
    try:
        yield RunningStack(settings)
    finally:
        remove(settings)
