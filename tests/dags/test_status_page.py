"""The page of all tables in Airflow: found as a plugin, and shown only after a login."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.api_fastapi.app import create_app, get_auth_manager, purge_cached_app
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from fastapi.testclient import TestClient

from spark_jobs.orchestration.page_age import NOTICE, opening
from spark_jobs.settings import load_settings
from spark_jobs.stack.airflow_config import PLUGINS
from spark_jobs.stack.secrets import random_signing_key

pytestmark = [pytest.mark.usefixtures("airflow_database"), pytest.mark.filterwarnings("default")]

AT = "/tidemark/status"
# One for all tests, since Airflow keeps what it has read.
SIGNING_KEY = random_signing_key()
IMPORT = f"""
import sys
sys.path.insert(0, {str(PLUGINS)!r})
import status_page
print("fastapi" in sys.modules, "deltalake" in sys.modules)
"""


@pytest.fixture(autouse=True)
def signing_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the stack has one; Airflow's own default is too short for what it signs by."""
    monkeypatch.setenv("AIRFLOW__API_AUTH__JWT_SECRET", SIGNING_KEY)


@pytest.fixture
def server() -> Iterator[TestClient]:
    """Airflow's own api-server, without a port."""
    try:
        yield TestClient(create_app(apps="core"), follow_redirects=False)
    finally:
        purge_cached_app()


@pytest.fixture
def as_viewer(server: TestClient) -> dict[str, str]:
    """The session of a user with the fewest rights, as a browser has it."""
    manager: Any = get_auth_manager()
    return {"_token": manager.generate_jwt(SimpleAuthManagerUser(username="v", role="viewer"))}


def test_the_page_requires_a_login(project, server) -> None:
    project.settings.status_page.parent.mkdir(exist_ok=True)
    assert server.get(AT).status_code == 401
    server.cookies.update({"_token": "forged"})
    assert server.get(AT).status_code in {401, 403}


def test_a_user_sees_the_page_as_it_was_written(project, server, as_viewer) -> None:
    server.cookies.update(as_viewer)
    before = server.get(AT)
    assert before.status_code == 200
    assert "tidemark page" in before.text
    load_settings().status_page.write_text("<!doctype html><p>all tables</p>")
    found = server.get(AT)
    assert found.text == "<!doctype html><p>all tables</p>"
    policy = found.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script" not in policy


def test_a_page_that_is_old_says_so(project, server, as_viewer) -> None:
    server.cookies.update(as_viewer)
    page = load_settings().status_page
    for minutes, shown in ((5, "hidden>"), (11, '<b id="age">11 min</b>')):
        page.write_text(f"{opening(datetime.now(UTC) - timedelta(minutes=minutes))}{NOTICE}")
        assert shown in server.get(AT).text


def test_airflow_names_it_in_its_navigation(project, server, as_viewer) -> None:
    server.cookies.update(as_viewer)
    plugins = server.get("/api/v2/plugins").json()["plugins"]
    [ours] = [one for one in plugins if one["name"] == "tidemark_page"]
    [view] = ours["external_views"]
    assert (view["name"], view["destination"]) == ("Tidemark", "nav")
    assert f"/{view['href']}" == AT


def test_components_that_serve_nothing_import_nothing_for_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True, timeout=100
    )
    assert done.stdout.split()[-1] == "False"
    assert "False False" in done.stdout
