"""An Airflow plugin: the page of all tables, in the navigation of Airflow's own pages.

Every component of Airflow loads plugins, and only the api-server answers requests, so that what
answering needs is imported with the first of them.
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
    """An ASGI application that is made when it is first asked."""

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
        # Relative, as Airflow's pages may lie below a path of their server.
        {"name": "Tidemark", "href": f"{PREFIX[1:]}/status", "url_route": "tidemark"}
    ]
