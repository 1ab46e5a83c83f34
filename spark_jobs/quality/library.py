"""Imports Great Expectations quietly, without telemetry, and as little of it as possible."""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
import warnings
from typing import Any, Final

# Needed by a few expectations only, and takes 1.4 of 5 seconds of the import on the reference
# machine.
DEFERRED: Final = "scipy.stats"


def load_library() -> Any:
    """Import Great Expectations; takes seconds the first time, so warm processes call it early."""
    # Disable telemetry, which must be done before the import.
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    # It logs caught exceptions with tracebacks, also during import; the gate reports them itself.
    logging.getLogger("great_expectations").setLevel(logging.CRITICAL)
    if "great_expectations" not in sys.modules:
        defer_import(DEFERRED)
    with warnings.catch_warnings():
        # Great Expectations imports the deprecated sre_constants of the standard library.
        warnings.filterwarnings("ignore", "module 'sre_", DeprecationWarning)
        import great_expectations  # noqa: PLC0415
    return great_expectations


def defer_import(name: str) -> None:
    """Register a module that is loaded on first use."""
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
    """An in-memory context for this audit: no files, no telemetry, no progress bars."""
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
