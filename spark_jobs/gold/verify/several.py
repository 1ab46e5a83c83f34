"""Verifies several views, a few at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed

from spark_jobs.errors import LakehouseError
from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.verify.published import Buckets, Verification, verify

# Much of a comparison of small tables is planning, in one thread of Spark's driver.
THREADS = 2
Result = tuple[str, Verification | LakehouseError]


def verify_each(
    context: GoldContext,
    views: Iterable[str],
    *,
    threads: int = THREADS,
    buckets: Buckets | None = None,
    begins: Callable[[str], None] = lambda _: None,
) -> Iterator[Result]:
    """Compare published tables with their SQL; an error of one view does not stop the others.

    Args:
        context: settings, manifest and locations of the project.
        views: names of views.
        threads: number of views that are compared at the same time.
        buckets: as in ``verify``.
        begins: called with each view's name when its comparison starts, in any thread.

    Yields:
        each view's name with its verification or its error, in the order in which they end.
    """
    # Opened here, because two threads would open two sessions.
    _ = context.spark

    def one(view: str) -> Verification | LakehouseError:
        begins(view)
        try:
            return verify(context, view, buckets=buckets)
        except LakehouseError as error:
            return error

    with ThreadPoolExecutor(threads, thread_name_prefix="verify") as pool:
        running = {pool.submit(one, view): view for view in views}
        for done in as_completed(running):
            yield running[done], done.result()
