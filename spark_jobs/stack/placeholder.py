"""The placeholder that the connector writes for a value that the database did not send.

Debezium's default is public: a row with that text as its value would look like one with a missing
value. So each installation has its own placeholder, a secret that streams read too.
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
    """Choose the placeholder of an installation that has captured nothing yet.

    Records in the topics contain it, so it never changes. An installation that started without
    the secret keeps Debezium's default.
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
    """Check that the placeholder is the one that records in the topics contain.

    Args:
        settings: where the secret lies.
        connector: its name.
        current: its current configuration.

    Raises:
        ConnectorFailedError: the secret was deleted, or is newer than the connector.
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
