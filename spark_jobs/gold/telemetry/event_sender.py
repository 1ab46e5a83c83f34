"""Emits asset events in Airflow, and knows when nobody can receive them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

# Reasons why events wait that are not failures: nobody could receive them.
ASSET_UNKNOWN = "Airflow has no such asset yet: no DAG names it"
NO_AIRFLOW = "the password of Airflow is not known"


class Events(Protocol):
    """Airflow's REST API for asset events; see ``access.airflow.AssetEvents``."""

    def asset(self, name: str) -> int | None:
        """The id of an asset, or None."""

    def attempts(self, asset: int) -> set[str]:
        """The attempts named by its newest events."""

    def emit(self, asset: int, extra: dict[str, Any]) -> None:
        """Emit an event.

        Args:
            asset: the id of the asset.
            extra: the event's content, which Airflow stores as JSON.
        """

    def close(self) -> None:
        """Close the connection."""


@dataclass
class EventSender:
    """A connection to Airflow that is opened on first use and again after ``close``.

    Each method raises ``AirflowAwayError`` if Airflow does not answer.

    Attributes:
        airflow: opens a client; None: no password of an Airflow is known.
    """

    airflow: Callable[[], Events | None]
    _client: Events | None = None
    _assets: dict[str, tuple[Events, int]] = field(default_factory=dict)

    def obstacle(self, asset: str) -> str | None:
        """Why nobody can receive events of an asset, or None.

        The other methods need an asset for which this returned None.
        """
        if asset in self._assets:
            return None
        self._client = client = self._client or self.airflow()
        if client is None:
            return NO_AIRFLOW
        number = client.asset(asset)
        if number is None:
            return ASSET_UNKNOWN
        self._assets[asset] = client, number
        return None

    def has(self, asset: str, attempt: str) -> bool:
        """Whether one of the newest events of the asset is about the attempt."""
        client, number = self._assets[asset]
        return attempt in client.attempts(number)

    def emit(self, asset: str, event: dict[str, Any]) -> None:
        """Emit an event of an asset.

        Args:
            asset: name of an asset for which ``obstacle`` returned None.
            event: the event's content, which Airflow stores as JSON.
        """
        client, number = self._assets[asset]
        client.emit(number, event)

    def close(self) -> None:
        """Drop the connection and the asset ids: Airflow may assign new ones."""
        if self._client is not None:
            self._client.close()
        self._client = None
        self._assets.clear()
