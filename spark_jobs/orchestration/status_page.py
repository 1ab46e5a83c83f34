"""Serves the status page of all tables to users of Airflow, and marks it if out of date."""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.api_fastapi.auth.managers.models.resource_details import AccessView
from airflow.api_fastapi.core_api.security import requires_access_view
from fastapi import Depends, FastAPI
from fastapi.responses import HTMLResponse

from spark_jobs.orchestration.page_age import marked
from spark_jobs.settings import load_settings

# The page's own policy; in addition no other site may show it in a frame.
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
}
NOT_WRITTEN = """\
<!doctype html><title>Tidemark</title>
<p>The page was not written yet. Switch the DAG <b>ops__stream_watch</b> on, which writes it every
five minutes, or run <b>tidemark page</b>.</p>
"""


def status_app() -> FastAPI:
    """The application that Airflow's api-server mounts; every role with a login can read it."""
    app = FastAPI(openapi_url=None)
    may_look = Depends(requires_access_view(AccessView.WEBSITE))

    @app.get("/status", dependencies=[may_look])
    def page() -> HTMLResponse:
        try:
            text = load_settings().status_page.read_text(encoding="utf-8")
        except FileNotFoundError:
            return HTMLResponse(NOT_WRITTEN, headers=HEADERS)
        return HTMLResponse(marked(text, now=datetime.now(UTC)), headers=HEADERS)

    return app
