"""Which Spark Connect servers are shown the token."""

from __future__ import annotations

import pytest

from spark_jobs.access.errors import SecretMissingError
from spark_jobs.access.secrets import CONNECT_TOKEN, connect_token
from spark_jobs.settings import load_settings
from spark_jobs.stack.secrets import write_secret
from spark_jobs.storage.session import with_token

HERE = ("sc://localhost:1", "sc://127.0.0.1:1/;user_id=a", "sc://[::1]:1")
SAID = ("sc://host:1/;use_ssl=true", "sc://host:1/;use_ssl=false")
ELSEWHERE = ("sc://host:1", "sc://10.0.0.1:1/;user_id=a")


@pytest.fixture
def settings(tmp_path):
    made = load_settings(tmp_path)
    write_secret(made, CONNECT_TOKEN, "t-1")
    return made


@pytest.mark.parametrize("remote", [*HERE, *SAID])
def test_a_local_server_or_a_tls_url_gets_the_token(settings, remote):
    assert connect_token(settings, remote) == "t-1"


@pytest.mark.parametrize("remote", ELSEWHERE)
def test_a_remote_server_gets_the_token_only_with_security_enabled(settings, tmp_path, remote):
    assert connect_token(settings, remote) is None
    demanded = load_settings(tmp_path, security={"enabled": True})
    assert connect_token(demanded, remote) == "t-1"


def test_without_security_no_connect_token_is_needed(tmp_path):
    assert connect_token(load_settings(tmp_path), HERE[0]) is None


def test_a_token_that_is_demanded_and_missing_is_an_error(tmp_path):
    with pytest.raises(SecretMissingError):
        connect_token(load_settings(tmp_path, security={"enabled": True}), HERE[0])


@pytest.mark.parametrize("remote", [*HERE, SAID[1]])
def test_pyspark_asks_for_no_certificate_where_there_is_none(remote):
    # It imports pandas, which most processes that collect this module do not need.
    from pyspark.sql.connect.client import DefaultChannelBuilder

    builder = DefaultChannelBuilder(with_token(remote, "t-1"))
    assert not builder.use_ssl
    # With a token PySpark takes TLS for granted, except on the host of this name.
    assert builder.host == "localhost" or not builder.secure
    headers = dict(builder.metadata())
    assert builder.token == "t-1" or headers["authorization"] == "Bearer t-1"
