"""Writers of several processes commit to one table at once: what is acknowledged is there, once."""

from __future__ import annotations

from collections import Counter

import pytest

from spark_jobs.settings import Settings
from tests.s3.faults import Fault, half_fail, proxy
from tests.s3.racing import DELTA_RS, DRIVERS, race

SINGLE_DRIVER = "io.delta.storage.S3SingleDriverLogStore"

pytestmark = pytest.mark.timeout(900)


def test_every_commit_that_was_acknowledged_is_there_once(store: Settings, location: str):
    outcome = race(store, location, rows=15)
    assert outcome.found == Counter(outcome.acknowledged)
    assert outcome.versions == len(outcome.acknowledged)
    assert {name for name, _ in outcome.acknowledged} == {*DRIVERS, DELTA_RS}
    assert {row for row in outcome.tried if row[0] in DRIVERS} <= outcome.acknowledged


def test_the_store_that_delta_chooses_by_itself_loses_commits(store: Settings, location: str):
    outcome = race(store, location, rows=15, log_store=SINGLE_DRIVER, pause=0)
    assert outcome.acknowledged - outcome.found.keys()


def test_nothing_is_lost_where_half_of_the_requests_fail(store: Settings, location: str):
    with proxy(store.ports.object_store, half_fail(seed=7)) as (port, done):
        # Whoever commits reads what the others did, each file by requests of which half fail.
        outcome = race(store, location, rows=2, port=port, pause=10)
        assert done[Fault.ANSWER_LOST] > 10
    assert outcome.acknowledged <= outcome.found.keys()
    # What a writer was not sure of is there or not, and never twice.
    assert set(outcome.found.values()) == {1}
    assert outcome.found.keys() <= outcome.tried
    assert {name for name, _ in outcome.acknowledged} >= {*DRIVERS}
