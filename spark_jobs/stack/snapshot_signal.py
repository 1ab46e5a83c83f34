"""Asks the connector for rows that a table had before it was captured.

Debezium reads them in chunks beside the changes that flow, and drops what a change made stale
meanwhile. Asking twice reads twice, which changes nothing: silver takes each row's newest state.
"""

from __future__ import annotations

import json
import os

from spark_jobs.settings import Settings
from spark_jobs.stack.connect import signal_file
from spark_jobs.stack.errors import ConnectorFailedError


def ask_for_rows(settings: Settings, table: str, *, request: str, connector: str) -> None:
    """Signal an incremental snapshot of one table.

    Args:
        settings: they say where the worker reads signals.
        table: as ``schema.table``.
        request: what the connector's log names it by.
        connector: its name, for the error.

    Raises:
        ConnectorFailedError: the worker runs elsewhere and reads no file of this machine.
    """
    if settings.kafka_connect.url:
        problem = f"runs elsewhere, so the rows of {table} cannot be asked for by a file"
        raise ConnectorFailedError(connector, problem)
    signal = {
        "id": request,
        "type": "execute-snapshot",
        "data": {
            "type": "INCREMENTAL",
            # A pattern, in which a dot is any character.
            "data-collections": [table.replace(".", r"\.")],
        },
    }
    path = signal_file(settings)
    path.parent.mkdir(parents=True, exist_ok=True)
    # One write of one line: the worker may read and empty the file at any time.
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(handle, f"{json.dumps(signal)}\n".encode())
    finally:
        os.close(handle)
