"""Loads Great Expectations quietly, without telemetry, and no more of it than is needed."""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
import warnings
from typing import Any, Final

# Great Expectations imports it for a few distribution tests; on the reference machine that takes
# 1.4 of its 5 seconds.
DEFERRED: Final = "scipy.stats"


def load_library() -> Any:
    """Import Great Expectations; takes seconds the first time, so warm processes call it early."""
    # Telemetry is on unless this says otherwise before the import.
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    # It logs each caught exception with its traceback; the gate reports them itself. Its import
    # is as talkative.
    logging.getLogger("great_expectations").setLevel(logging.CRITICAL)
    if "great_expectations" not in sys.modules:
        defer_import(DEFERRED)
    with warnings.catch_warnings():
        # Great Expectations imports the deprecated sre_constants of the standard library.
        warnings.filterwarnings("ignore", "module 'sre_", DeprecationWarning)
        import great_expectations  # noqa: PLC0415
    return great_expectations


def defer_import(name: str) -> None:
    """Put a module in place that loads itself when it is first used."""
    if name in sys.modules:
        return
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        return
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, module)


def ephemeral_context(library: Any) -> Any:
    """A context in memory, of this audit alone: no files, no telemetry, no progress bars."""
    from great_expectations.data_context.types.base import (  # noqa: PLC0415
        DataContextConfig,
        InMemoryStoreBackendDefaults,
        ProgressBarsConfig,
    )

    return library.get_context(
        mode="ephemeral",
        project_config=DataContextConfig(
            store_backend_defaults=InMemoryStoreBackendDefaults(init_temp_docs_sites=False),
            analytics_enabled=False,
            progress_bars=ProgressBarsConfig(globally=False, metric_calculations=False),
        ),
    )
