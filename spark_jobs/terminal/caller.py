"""Reports a command's failure to the program that runs it, as JSON in a file of that program.

The exit code only says that the command failed, and its output is for people.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from spark_jobs.errors import LakehouseError

# The environment variable that names the file.
FAILURE_FILE: Final = "TIDEMARK_FAILURE_FILE"


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a command failed.

    Attributes:
        condition: of the error; None: a check found problems.
        todo: what to do; None if the error has no hint.
        runbook: its name; None: that of the condition.
    """

    condition: str | None = None
    todo: str | None = None
    runbook: str | None = None


def report_error(error: LakehouseError) -> None:
    """Write the error to the caller's file, if the environment names one."""
    report_failure(Failure(condition=error.condition, todo=error.hint))


def report_failure(failure: Failure) -> None:
    """Write the failure to the caller's file, if the environment names one."""
    file = os.environ.get(FAILURE_FILE)
    if file:
        try:
            Path(file).write_text(json.dumps(asdict(failure)), encoding="utf-8")
        except OSError as error:
            # The failure is reported on the terminal too.
            print(f"{FAILURE_FILE} cannot be written: {error}", file=sys.stderr)


def reported_failure(file: Path) -> Failure:
    """The failure that the command wrote; an empty one if it wrote nothing."""
    text = file.read_text(encoding="utf-8")
    return Failure(**json.loads(text)) if text else Failure()
