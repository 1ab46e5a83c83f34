"""Which folders of a lake other accounts of the machine may read: gold, and nothing else.

Files belong to the account that runs the pipeline, so no other one writes them. What others may
read is decided at the folders right below the root; the files below have the usual rights.
"""

from __future__ import annotations

import stat
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from spark_jobs.names import Layer
from spark_jobs.storage.lake import Lake, remote_location

_OTHERS, _READ = 0o007, 0o005
_NEW = 0o750


def restrict(lake: Lake, *, readable: Collection[Layer]) -> None:
    """Close a lake's folders to other accounts, except for some layers; makes those that lack.

    The owner's and the group's rights stay as they are. A folder of another account is left to it,
    and an object store to its policies.

    Args:
        lake: its root may not be there yet.
        readable: the layers that every account may read.
    """
    if remote_location(lake.root):
        return
    for name in lake.folders:
        # Who only reads somebody else's lake makes and changes nothing there.
        with suppress(OSError):
            _set(Path(lake.root, name), is_readable=name in {*readable})


def _set(folder: Path, *, is_readable: bool) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(exist_ok=True, mode=_NEW)
    mode = stat.S_IMODE(folder.stat().st_mode)
    wanted = mode | _READ if is_readable else mode & ~_OTHERS
    if wanted != mode:
        folder.chmod(wanted)
