"""Which commits of a published table are foreign."""

from __future__ import annotations

from deltalake import DeltaTable

from spark_jobs.gold.base.publications import intruder, latest_publication
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
