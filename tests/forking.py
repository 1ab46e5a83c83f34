"""Processes that are forked from one with the necessary imports.

Imports take seconds of CPU, which is too much for tests that start many processes.
"""

from __future__ import annotations

from multiprocessing import get_context
from multiprocessing.context import ForkServerContext

_IMPORTED = ["spark_jobs.rollout.apply", "spark_jobs.rollout.planning", "spark_jobs.graph.compile"]


def forking(tests: str) -> ForkServerContext:
    """Starts processes that share no state with the tests or each other.

    Args:
        tests: the module with the functions that they run, imported only once as well.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload([*_IMPORTED, tests])
    return context
