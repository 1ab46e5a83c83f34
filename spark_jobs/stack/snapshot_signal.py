"""Requests an incremental snapshot: rows that a table had before it was captured.

Debezium reads them in chunks while changes continue, and drops rows that a change has made stale.
Two requests read the rows twice, which is harmless: silver keeps each row's newest state.
"""

from __future__ import annotations

import json
import os

from spark_jobs.settings import Settings
from spark_jobs.stack.connector import only, signal_file
from spark_jobs.stack.errors import ConnectorFailedError


def ask_for_rows(settings: Settings, table: str, *, request: str, connector: str) -> None:
    """Signal an incremental snapshot of one table.

    Args:
        settings: with the path of the signal file.
        table: as ``schema.table``.
        request: id of the request in the connector's log.
        connector: its name, for the error.

    Raises:
        ConnectorFailedError: the worker runs on another machine and cannot read the file.
    """
    if settings.kafka_connect.url:
        problem = f"runs elsewhere, so the rows of {table} cannot be asked for by a file"
        raise ConnectorFailedError(connector, problem)
    signal = {
        "id": request,
        "type": "execute-snapshot",
        "data": {
            "type": "INCREMENTAL",
            "data-collections": [only(table)],
        },
    }
    path = signal_file(settings)
    path.parent.mkdir(parents=True, exist_ok=True)
    # A single write: the worker may read and truncate the file at any time.
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(handle, f"{json.dumps(signal)}\n".encode())
    finally:
        os.close(handle)
