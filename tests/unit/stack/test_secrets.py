"""Secrets are made once, belong to their owner, and stand in no configuration."""

from __future__ import annotations

import json
import stat

import pytest

from spark_jobs.access.errors import SecretMissingError
from spark_jobs.access.secrets import UNAVAILABLE_VALUE, secret_path, unavailable_placeholder
from spark_jobs.settings import load_settings
from spark_jobs.stack import airflow_config, secrets
from spark_jobs.stack.airflow import new_users
from spark_jobs.stack.airflow_config import airflow_options, write_airflow_config
from spark_jobs.stack.catalog import all_steps
from spark_jobs.stack.connect import worker_properties
from spark_jobs.stack.connect_rest import prepare_rest
from spark_jobs.stack.connector import connector_config
from spark_jobs.stack.errors import ConnectorFailedError
from spark_jobs.stack.kafka import data_directory
from spark_jobs.stack.parts import Part
from spark_jobs.stack.placeholder import OPTION, check_placeholder, ensure_placeholder
from spark_jobs.stack.postgres import dsn, secret_name


@pytest.fixture
def settings(tmp_path):
    return load_settings(tmp_path)


@pytest.fixture
def passwords(settings):
    roles = ("airflow", "shop", "debezium", "postgres")
    return {role: secrets.ensure_secret(settings, secret_name(role)) for role in roles}


def test_a_secret_is_generated_once(settings):
    first = secrets.ensure_secret(settings, "a")
    assert secrets.ensure_secret(settings, "a") == first
    assert secrets.ensure_secret(settings, "b") != first


def test_only_the_owner_may_read_a_secret(settings):
    path = secrets.write_secret(settings, "connect/debezium", "x")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for directory in (path.parent, settings.secrets_dir):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert [one.name for one in path.parent.iterdir()] == ["debezium"]


def test_a_missing_secret_is_named(settings):
    with pytest.raises(SecretMissingError) as caught:
        dsn(settings, database="shop", role="shop")
    assert caught.value.name == "postgres-shop"


def test_no_secret_is_in_a_command_or_a_configuration(settings, passwords):
    write_airflow_config(settings)
    users = json.loads(new_users())
    known = [*passwords.values(), *(user["password"] for user in users.values())]
    known += [
        secrets.read_secret(settings, name)
        for name in (
            airflow_config.FERNET_KEY_FILE,
            airflow_config.API_KEY_FILE,
            airflow_config.JWT_KEY_FILE,
        )
    ]
    prepare_rest(settings)
    steps = all_steps(settings)
    texts = [
        *(" ".join(step.command) for step in steps if isinstance(step, Part)),
        *(str(dict(step.environment)) for step in steps if isinstance(step, Part)),
        (airflow_config.airflow_home(settings) / "airflow.cfg").read_text(),
        str(airflow_options(settings)),
        str(worker_properties(settings, 1)),
        str(connector_config(settings, ["public.users"])),
    ]
    assert not [one for one in known for text in texts if one in text]


def test_an_installation_has_a_text_of_its_own_for_values_that_were_not_sent(settings, tmp_path):
    assert unavailable_placeholder(settings) == "__debezium_unavailable_value"
    ensure_placeholder(settings)
    chosen = unavailable_placeholder(settings)
    ensure_placeholder(settings)
    assert unavailable_placeholder(settings) == chosen != "__debezium_unavailable_value"
    config = connector_config(settings, ["public.users"])
    assert config[OPTION] == f"${{directory:{settings.secrets_dir}/connect:unavailable-value}}"
    check_placeholder(settings, "shop", current=config)
    other = load_settings(tmp_path, state_dir=tmp_path / "other")
    ensure_placeholder(other)
    assert unavailable_placeholder(other) != chosen


def test_a_running_connector_keeps_the_default_placeholder(settings):
    (data_directory(settings, 1) / "_connect_configs-0").mkdir(parents=True)
    ensure_placeholder(settings)
    assert unavailable_placeholder(settings) == "__debezium_unavailable_value"
    assert OPTION not in connector_config(settings, ["public.users"])


def test_an_external_connector_keeps_the_default_placeholder(tmp_path):
    settings = load_settings(tmp_path, kafka_connect={"url": "http://connect.internal:8083"})
    ensure_placeholder(settings)
    assert unavailable_placeholder(settings) == "__debezium_unavailable_value"


def test_another_text_than_that_of_the_topics_is_refused(settings):
    before = connector_config(settings, ["public.users"])
    secrets.write_secret(settings, UNAVAILABLE_VALUE, "mine")
    with pytest.raises(ConnectorFailedError, match="remove"):
        check_placeholder(settings, "shop", current=before)
    after = connector_config(settings, ["public.users"])
    secret_path(settings, UNAVAILABLE_VALUE).unlink()
    with pytest.raises(ConnectorFailedError, match="restore"):
        check_placeholder(settings, "shop", current=after)


def test_connect_may_read_the_one_secret_that_it_needs(settings, passwords):
    prepare_rest(settings)
    allowed = worker_properties(settings, 1)["config.providers.directory.param.allowed.paths"]
    assert allowed == str(settings.secrets_dir / "connect")
    assert [one.name for one in (settings.secrets_dir / "connect").iterdir()] == ["debezium"]


def test_each_airflow_user_has_a_password_of_its_own():
    users = json.loads(new_users())
    assert {name: user["role"] for name, user in users.items()} == {
        "admin": "Admin",
        "engineer": "Op",
        "oncall": "User",
        "analyst": "Viewer",
    }
    assert len({user["password"] for user in users.values()}) == len(users)
