"""How a verb reports its failure to the program that runs it: as JSON, in a file of that program.

The exit code says only that it failed, and the printed text is for people.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from spark_jobs.errors import LakehouseError

# The environment variable that names the file.
FAILURE_FILE: Final = "TIDEMARK_FAILURE_FILE"


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a verb failed.

    Attributes:
        condition: of the error; None: a check found problems.
        todo: what to do; None if the error does not say.
        runbook: its name; None: the condition says which.
    """

    condition: str | None = None
    todo: str | None = None
    runbook: str | None = None


def report_error(error: LakehouseError) -> None:
    """Write the error to the caller's file, if there is a caller who wants it."""
    report_failure(Failure(condition=error.condition, todo=error.hint))


def report_failure(failure: Failure) -> None:
    """Write the failure to the caller's file, if there is a caller who wants it."""
    file = os.environ.get(FAILURE_FILE)
    if file:
        Path(file).write_text(json.dumps(asdict(failure)), encoding="utf-8")


def reported_failure(file: Path) -> Failure:
    """What the verb wrote; an empty failure if it wrote nothing."""
    text = file.read_text(encoding="utf-8")
    return Failure(**json.loads(text)) if text else Failure()
