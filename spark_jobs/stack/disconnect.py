"""Deletes a connector that captures no table any more, with its position and its slot."""

from __future__ import annotations

import httpx
import psycopg

from spark_jobs.access.errors import SecretMissingError
from spark_jobs.errors import first_line
from spark_jobs.settings import Settings
from spark_jobs.stack.connect import ANSWER_SECONDS, client, connector_status
from spark_jobs.stack.connector import CONNECTOR, SLOT
from spark_jobs.stack.errors import ConnectorFailedError
from spark_jobs.stack.resnapshot import drop_slot, until, wait_until_stopped
from spark_jobs.stack.slot import connector_dsn

_PATH = f"/connectors/{CONNECTOR}"


def disconnect(settings: Settings) -> str:
    """Delete the connector, its offsets and its slot; repeat it after an interruption.

    A slot without a reader keeps the log of its database until the disk is full. With the old
    offsets, a connector that is made later would not read the rows that its tables have.

    Returns:
        what became of the slot, as a sentence for users. A database that is gone prevents nothing.

    Raises:
        ConnectorFailedError: Connect refuses or does not answer, or another reader uses the slot.
    """
    try:
        with client(settings) as api:
            api.timeout = httpx.Timeout(ANSWER_SECONDS)
            known = connector_status(api, strict=True) is not None
            if known:
                api.put(f"{_PATH}/stop").raise_for_status()
                wait_until_stopped(api, CONNECTOR)
                api.delete(f"{_PATH}/offsets").raise_for_status()
            message = _without_slot(settings)
            if known:
                api.delete(_PATH).raise_for_status()
    except httpx.HTTPStatusError as error:
        problem = f"is not deleted: {first_line(error.response.text)}"
        raise ConnectorFailedError(CONNECTOR, problem) from error
    except httpx.HTTPError as error:
        problem = f"is not deleted, because Kafka Connect does not answer: {error}"
        raise ConnectorFailedError(CONNECTOR, problem) from error
    return message


def _without_slot(settings: Settings) -> str:
    try:
        address = connector_dsn(settings)
        until(CONNECTOR, lambda: drop_slot(address, SLOT), f"leaves slot {SLOT!r} in use")
    except (psycopg.Error, SecretMissingError) as error:
        return (
            f"slot {SLOT!r} could not be dropped ({first_line(str(error))[:-1]}); it keeps the "
            f"log of its database until you run there: SELECT pg_drop_replication_slot('{SLOT}')"
        )
    return f"slot {SLOT!r} is dropped; a table that is captured later is read from its first row"
