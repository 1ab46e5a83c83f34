"""Processes that begin as copies of one that has imported what they need.

Importing takes a process seconds of CPU, so what tests start many of is not imported by each.
"""

from __future__ import annotations

from multiprocessing import get_context
from multiprocessing.context import ForkServerContext

_IMPORTED = ["spark_jobs.rollout.apply", "spark_jobs.rollout.planning", "spark_jobs.graph.compile"]


def forking() -> ForkServerContext:
    """Starts processes that share nothing with the tests' own, and nothing with each other."""
    context = get_context("forkserver")
    context.set_forkserver_preload(_IMPORTED)
    return context
