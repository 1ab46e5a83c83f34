"""Which commits of a published table are foreign."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_jobs.gold.base.publications import intruder, latest_publication
from spark_jobs.gold.recover.rollback import Rollbacker
from spark_jobs.gold.refresh.steps import Refresher
from spark_jobs.planning.decision import ReasonCode
from spark_jobs.planning.plan import Intruder
from tests.unit.gold.conftest import VIEWS, Shop

VIEW = next(iter(VIEWS))


def test_a_newer_publication_is_not_foreign(shop: Shop) -> None:
    """A refresh may publish after the log was read for the newest publication."""
    shop.publish(VIEW)
    location = shop.context.published_at(VIEW)
    read = latest_publication(location)
    assert read is not None
    shop.publish(VIEW)
    assert intruder(location, read) is None
    DeltaTable(location).delete("row = 3")
    foreign = intruder(location, read)
    assert foreign is not None
    assert (foreign.version, foreign.operation) == (DeltaTable(location).version(), "DELETE")
    shop.publish(VIEW)
    assert intruder(location, read) == foreign


@pytest.mark.parametrize("between", [1, 30])
def test_a_commit_below_a_publication_is_foreign(shop: Shop, between: int) -> None:
    """Spark appended rows on top of what another writer appended while they were computed."""
    location = shop.context.published_at(VIEW)
    follows = DeltaTable(location).version()
    for _ in range(between):
        write_deltalake(location, pa.table({"row": [99]}), mode="append")
    shop.publish(VIEW, follows=follows)
    read = latest_publication(location)
    assert read is not None
    assert intruder(location, read) == Intruder(read.version - 1, "WRITE")
    plan = Refresher(shop.context.settings, shop.context.manifest, shop.context.store).explain(VIEW)
    assert plan.reason.code is ReasonCode.FOREIGN_COMMIT
    shop.publish(VIEW, follows=read.version)
    corrected = latest_publication(location)
    assert corrected is not None
    assert intruder(location, corrected) is None


def test_a_compaction_below_a_publication_is_not_foreign(shop: Shop) -> None:
    shop.publish(VIEW)
    location = shop.context.published_at(VIEW)
    follows = DeltaTable(location).version()
    DeltaTable(location).optimize.compact()
    assert DeltaTable(location).version() > follows
    shop.publish(VIEW, follows=follows)
    read = latest_publication(location)
    assert read is not None
    assert intruder(location, read) is None


def test_a_rollback_leaves_no_row_of_a_commit_below_the_publication(shop: Shop) -> None:
    location = shop.context.published_at(VIEW)
    follows = DeltaTable(location).version()
    write_deltalake(location, pa.table({"row": [99]}), mode="append")
    shop.publish(VIEW, follows=follows)
    refresher = Refresher(shop.context.settings, shop.context.manifest, shop.context.store)
    assert Rollbacker(refresher).target(VIEW).version == follows
