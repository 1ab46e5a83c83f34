"""Calls in another process: one process cannot have both kinds of Spark session."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context


def apart(function: Callable[..., None], *arguments: object) -> None:
    """Call a function in a new process; its exception is raised here."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        pool.submit(function, *arguments).result(timeout=240)
