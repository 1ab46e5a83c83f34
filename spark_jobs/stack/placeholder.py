"""What the connector writes in place of a value that the database did not send.

Debezium's own text is known to everyone: a row that holds that very text could not be told from one
whose value was left out. So an installation has a text of its own, a secret that streams read too.
"""

from __future__ import annotations

from collections.abc import Mapping
from secrets import token_hex

from spark_jobs.access.secrets import UNAVAILABLE_VALUE, secret_path
from spark_jobs.settings import Settings
from spark_jobs.stack.errors import ConnectorFailedError
from spark_jobs.stack.kafka import INTERNAL_TOPICS, data_directory, nodes
from spark_jobs.stack.secrets import ensure_secret

OPTION = "unavailable.value.placeholder"


def ensure_placeholder(settings: Settings) -> None:
    """Choose the text of an installation that has captured nothing yet.

    What is in the topics has the text that was chosen then, so it never changes. An installation
    that began without the secret keeps Debezium's own.
    """
    configured = f"{INTERNAL_TOPICS}configs-*"
    directories = [data_directory(settings, number) for number in nodes(settings)]
    captured = any(next(one.glob(configured), None) for one in directories)
    if not captured and not settings.kafka_connect.url:
        ensure_secret(settings, UNAVAILABLE_VALUE, lambda: f"__unavailable_{token_hex(16)}")


def placeholder_config(settings: Settings) -> dict[str, str]:
    """The connector's option; Connect's REST interface shows the file's name only."""
    path = secret_path(settings, UNAVAILABLE_VALUE)
    return {OPTION: f"${{directory:{path.parent}:{path.name}}}"} if path.exists() else {}


def check_placeholder(settings: Settings, connector: str, *, current: Mapping[str, str]) -> None:
    """Refuse another text than the one that the topics have.

    Args:
        settings: where the secret lies.
        connector: its name.
        current: the configuration that it runs with.

    Raises:
        ConnectorFailedError: the secret was lost, or came after the connector.
    """
    path = secret_path(settings, UNAVAILABLE_VALUE)
    if OPTION in current and not path.exists():
        problem = (
            f"marks values that were not sent with the text of {path}, which was deleted; restore"
        )
        raise ConnectorFailedError(connector, f"{problem} that file")
    if OPTION not in current and path.exists():
        problem = "marks values that were not sent with Debezium's own text; remove"
        raise ConnectorFailedError(connector, f"{problem} {path}")
