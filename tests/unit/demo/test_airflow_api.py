"""Airflow's REST API while Airflow is away."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from spark_jobs.demo import airflow_api as module
from spark_jobs.demo.airflow_api import ADMINISTRATOR, AirflowApi
from spark_jobs.demo.errors import AirflowUnreachableError
from spark_jobs.settings import load_settings


@pytest.mark.parametrize(
    ("text", "line"), [("", "ReadTimeout"), ("timed out.\nwhile reading", "timed out")]
)
def test_an_error_of_the_client_may_have_no_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, line: str
) -> None:
    def away(_: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout(text)

    settings = load_settings(tmp_path)
    monkeypatch.setattr(module, "airflow_users", lambda _: {ADMINISTRATOR: {"password": "p"}})
    with AirflowApi(settings) as api:
        api._client = httpx.Client(base_url="http://a", transport=httpx.MockTransport(away))
        with pytest.raises(AirflowUnreachableError) as caught:
            api.log_in()
    assert caught.value.line == line
