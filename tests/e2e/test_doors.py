"""What an account of this machine gets at each door of a stack, without any of its secrets."""

from __future__ import annotations

import os

import pytest

from tests.e2e import doors
from tests.e2e.running import RunningStack


@pytest.fixture(params=["stack", pytest.param("plain_stack", marks=pytest.mark.long)])
def whole(request: pytest.FixtureRequest) -> RunningStack:
    """A full stack: with security on, and as it is where nothing is set."""
    found: RunningStack = request.getfixturevalue(request.param)
    return found


def test_nobody_gets_in_without_a_secret(whole: RunningStack) -> None:
    assert doors.tried(whole, doors.PARTS) == doors.expected(whole.settings, doors.PARTS)


@pytest.mark.parametrize("part", ["spark-connect", "streams"])
def test_spark_s_own_ports_ask_for_a_login(whole: RunningStack, part: str) -> None:
    doors.assert_spark_asks(whole, part)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
def test_of_the_state_directory_another_account_reads_gold_alone(whole: RunningStack) -> None:
    doors.assert_gold_alone(whole)
