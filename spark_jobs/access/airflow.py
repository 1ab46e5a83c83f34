"""The part of Airflow's REST API for asset events."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import httpx

from spark_jobs.access.errors import AirflowAwayError

# Airflow's user as whom the streams emit events.
ANNOUNCER = "announcer"
_SECONDS = 20
# Number of newest events of an asset that are searched for an attempt.
_EVENTS = 100


class AssetEvents(AbstractContextManager["AssetEvents"]):
    """Reads and emits asset events as a user of Airflow."""

    def __init__(self, url: str, *, user: str, password: str) -> None:
        """Create a client that logs in with its first request.

        Args:
            url: the address of Airflow's api-server.
            user: with the rights to read assets and create their events.
            password: of the user.
        """
        self._url = url.rstrip("/")
        self._login = {"username": user, "password": password}
        self._client = httpx.Client(base_url=self._url, timeout=_SECONDS, trust_env=False)
        self._logged_in = False

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def asset(self, name: str) -> int | None:
        """An asset's id, or None if no DAG of this Airflow names it.

        Raises:
            AirflowAwayError: Airflow does not answer, or refuses the user.
        """
        found = self._ask("GET", "/api/v2/assets", params={"name_pattern": name, "limit": 100})
        return next((int(one["id"]) for one in found["assets"] if one["name"] == name), None)

    def attempts(self, asset: int) -> set[str]:
        """The attempts whose publications are among the newest events of an asset.

        Raises:
            AirflowAwayError: Airflow does not answer, or refuses the user.
        """
        params = {"asset_id": asset, "order_by": "-timestamp", "limit": _EVENTS}
        found = self._ask("GET", "/api/v2/assets/events", params=params)
        extras = (one.get("extra") or {} for one in found["asset_events"])
        return {str(extra["attempt"]) for extra in extras if "attempt" in extra}

    def emit(self, asset: int, extra: dict[str, Any]) -> None:
        """Emit an event.

        Args:
            asset: the asset's id.
            extra: the event's content, which Airflow stores as JSON.

        Raises:
            AirflowAwayError: Airflow does not answer, or refuses the user.
        """
        body = {"asset_id": asset, "extra": extra}
        self._ask("POST", "/api/v2/assets/events", json=body)

    def _ask(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        try:
            if not self._logged_in:
                self._log_in()
            answer = self._client.request(method, path, **options)
            if answer.status_code == httpx.codes.UNAUTHORIZED:
                # The token expires after hours, and this process runs for weeks.
                self._log_in()
                answer = self._client.request(method, path, **options)
            answer.raise_for_status()
            found: dict[str, Any] = answer.json()
        except (httpx.HTTPError, ValueError) as error:
            self._logged_in = False
            raise AirflowAwayError(self._url, str(error) or type(error).__name__) from error
        return found

    def _log_in(self) -> None:
        answer = self._client.post("/auth/token", json=self._login)
        answer.raise_for_status()
        self._client.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"
        self._logged_in = True
