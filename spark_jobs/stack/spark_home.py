"""PySpark's own distribution: the programs of Spark's servers."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path


def spark_home() -> Path:
    """Its directory."""
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None  # noqa: S101, PT018 - a pinned dependency
    return Path(spec.origin).parent
