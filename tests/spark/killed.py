"""What ends by SIGKILL at a failpoint, in a process with a Spark of its own.

Unlike an exception in the tests' process, this lets nothing clean up.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from multiprocessing import get_context

from pyspark.sql import SparkSession

from spark_jobs.settings import Settings
from spark_jobs.state.failpoints import EXIT_CODE, VARIABLE
from spark_jobs.storage.session import command_session

_SECONDS = 300


def kill_at(point: str, function: Callable[..., object], *arguments: object) -> None:
    """Call a function in a process that is killed where it passes a failpoint.

    Args:
        point: the failpoint.
        function: of a module, so that another process can import it.
        arguments: for it; they are pickled.
    """
    process = get_context("spawn").Process(target=_armed, args=(point, function, arguments))
    process.start()
    process.join(_SECONDS)
    assert process.exitcode == EXIT_CODE, f"it ended with {process.exitcode} and passed no {point}"


def _armed(point: str, function: Callable[..., object], arguments: tuple[object, ...]) -> None:
    os.environ[VARIABLE] = point
    function(*arguments)


def own_spark(settings: Settings) -> AbstractContextManager[SparkSession]:
    """A session as a command has it."""
    return command_session(settings, "killed")
