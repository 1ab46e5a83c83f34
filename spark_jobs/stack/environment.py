"""The environment of supervised processes: the stack's settings, no other variables of the caller.

Only the key of an external object store has no setting.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spark_jobs.settings import Settings
from spark_jobs.storage.lake import remote_location

INHERITED = ("HOME", "JAVA_HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER")
# Settings with arbitrary keys, which are case-sensitive, and values whose type counts.
FREE_KEYS = ("__CONF", "__ROLES", "__TRANSPORT", "_VARIABLES")


def stack_environment(settings: Settings) -> dict[str, str]:
    """Variables for every part; a part loads exactly the settings that started the stack."""
    kept = {name: os.environ[name] for name in INHERITED if name in os.environ}
    if remote_location(settings.lake) and not settings.local.object_store:
        # The readers of an external object store find its key there only.
        kept |= {name: text for name, text in os.environ.items() if name.startswith("AWS_")}
    programs = str(Path(sys.executable).parent)
    return {
        **kept,
        "PATH": f"{programs}{os.pathsep}{kept.get('PATH', os.defpath)}",
        "PYTHONUNBUFFERED": "1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "GX_ANALYTICS_ENABLED": "false",
        **dict(settings_variables(settings)),
    }


def settings_variables(settings: Settings) -> Iterator[tuple[str, str]]:
    """``TIDEMARK_*`` variables from which ``load_settings`` makes equal settings."""
    yield "TIDEMARK_PROJECT", str(settings.project_dir)
    yield "TIDEMARK_STATE_DIR", str(settings.state)
    values = settings.model_dump(
        mode="json", exclude_unset=True, exclude={"project_dir", "state_dir"}
    )
    for key, value in values.items():
        yield from flattened(f"TIDEMARK_{key.upper()}", value)


def flattened(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Nested settings as variables; mappings with arbitrary keys become one JSON value.

    None is the default of every setting that may have it, and no variable can say it.

    >>> dict(flattened("P", {"kafka": 1, "conf": {"a.b": "c"}, "url": None}))
    {'P__KAFKA': '1', 'P__CONF': '{"a.b": "c"}'}
    """
    if value is None:
        return
    if not isinstance(value, dict):
        yield name, value if isinstance(value, str) else json.dumps(value)
    elif name.endswith(FREE_KEYS):
        yield name, json.dumps(value)
    else:
        for key, inner in value.items():
            yield from flattened(f"{name}__{key.upper()}", inner)
