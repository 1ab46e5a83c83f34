"""An Airflow plugin: the status page of all tables, in Airflow's navigation.

Every component of Airflow loads plugins, but only the api-server answers requests, so the
application is imported at the first request.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.plugins_manager import AirflowPlugin

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import Receive, Scope, Send

PREFIX = "/tidemark"


class StatusPage:
    """An ASGI application that is created at the first request."""

    @cached_property
    def _app(self) -> FastAPI:
        from spark_jobs.orchestration.status_page import status_app

        return status_app()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await self._app(scope, receive, send)


class StatusPagePlugin(AirflowPlugin):
    """Airflow finds plugins by their base class."""

    name = "tidemark_page"
    fastapi_apps: list[Any] = [  # noqa: RUF012 - Airflow's own interface
        {"app": StatusPage(), "url_prefix": PREFIX, "name": "Tidemark"}
    ]
    external_views: list[Any] = [  # noqa: RUF012 - the same
        # Relative, because Airflow may be served below a path.
        {"name": "Tidemark", "href": f"{PREFIX[1:]}/status", "url_route": "tidemark"}
    ]
