"""Which end-to-end tests share a stack: pytest-xdist runs those in one process, one by one.

Another process runs those of another stack meanwhile. With ``--dist loadfile`` only, and other
tests go by file as usual.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from xdist.scheduler import LoadFileScheduling

if TYPE_CHECKING:
    from xdist.remote import Producer

# The full stack, which another process would start again; all other stacks are of one file.
SHARED = "stack"
FILES = ("test_doors", "test_pipeline", "test_security", "test_stack")
STACK_OF = {f"tests/e2e/{file}.py": SHARED for file in FILES}


class StackScheduling(LoadFileScheduling):
    """By file, and files of one stack together."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return STACK_OF.get(file, file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    return StackScheduling(config, log) if config.getvalue("dist") == "loadfile" else None
