"""Whether a published table equals its SQL: what ``verify`` asks, without Delta's own reader."""

from __future__ import annotations

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.base.publications import intruder, latest_publication
from spark_jobs.gold.compute.difference import multiset_difference, same_columns
from spark_jobs.gold.compute.pinned import named_inputs, pinned_result
from spark_jobs.gold.verify.tolerance import close_rows
from spark_jobs.storage import reader


def assert_right(context: GoldContext, view: str) -> None:
    """Fail unless the newest publication is the view's SQL over the versions that it names.

    Spark computes it, as for ``verify``, and compares both as multisets, floats with the same
    tolerance. It reads tables by their files where these are their rows (``test_plain_tables``
    compares that with Delta's reader), and by Delta's reader elsewhere. So it runs no query over a
    log, which takes most of the CPU time of ``verify`` where tables hold few rows.

    Raises:
        AssertionError: the content differs, or somebody else wrote it, or for another definition.
    """
    entry, location = context.entry(view), context.published_at(view)
    publication = latest_publication(location)
    assert publication is not None, f"{view} is not published"
    foreign = intruder(location, publication)
    assert foreign is None, f"{view} was changed after its publication: {foreign}"
    mark = publication.watermark
    assert mark.fingerprint == entry.fingerprint, f"{view} was published with other SQL"
    with named_inputs(context, view, mark.vector, prefix="right") as names:
        expected = pinned_result(context, entry, vector=mark.vector, clock=mark.clock, names=names)
        actual = reader.read(context.spark, location, publication.version)
        assert same_columns(expected, actual), (view, expected.schema, actual.schema)
        # The last column tells by how many rows the published table has too many, or too few.
        differing = multiset_difference(expected, actual).collect()
        tolerance = context.settings.gold.float_tolerance
        close = differing and close_rows(expected, actual, tolerance=tolerance)
    assert not differing or close, (view, differing)
