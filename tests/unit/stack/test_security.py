"""One setting switches on what every server asks and every client shows."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import ResourcePatternType

from spark_jobs.access.kafka import Principal, password_name
from spark_jobs.access.secrets import AUTHORITY, CONNECT_TOKEN
from spark_jobs.settings import load_settings
from spark_jobs.stack.airflow_config import (
    DATABASE_URL_FILE,
    airflow_environment,
    write_airflow_config,
)
from spark_jobs.stack.catalog import all_steps
from spark_jobs.stack.certificates import KAFKA, certificate_name, ensure_certificate
from spark_jobs.stack.connect import worker_properties
from spark_jobs.stack.connect_rest import prepare_rest
from spark_jobs.stack.connector import connector_config
from spark_jobs.stack.errors import KafkaUsersMissingError
from spark_jobs.stack.kafka import kafka_directory, prepare_broker, server_properties
from spark_jobs.stack.kafka_rights import connect_rights, declared_rights
from spark_jobs.stack.parts import Part
from spark_jobs.stack.postgres import AIRFLOW, SHOP, dsn, secret_name
from spark_jobs.stack.postgres_server import server_files
from spark_jobs.stack.secrets import ensure_secret, read_secret
from spark_jobs.stack.spark_connect import connect_url, prepare_server
from spark_jobs.storage.java_classes import class_jars


@pytest.fixture
def settings(tmp_path):
    made = load_settings(tmp_path, security={"enabled": True})
    ensure_certificate(made, KAFKA)
    prepare_rest(made)
    for principal in Principal:
        ensure_secret(made, password_name(principal))
    for role in (SHOP, AIRFLOW):
        ensure_secret(made, secret_name(role))
    return made


def test_the_setting_comes_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("TIDEMARK_SECURITY__ENABLED", "true")
    assert load_settings(tmp_path).security.enabled


def test_the_broker_has_no_plaintext_listener_and_denies_by_default(settings):
    properties = server_properties(settings, 1)
    assert "PLAINTEXT" not in str(properties)
    assert properties["allow.everyone.if.no.acl.found"] == "false"
    assert properties["super.users"] == "User:broker;User:admin"
    assert properties["listener.name.controller.ssl.client.auth"] == "required"


def test_every_client_of_the_worker_logs_in(settings):
    properties = worker_properties(settings, 1)
    for prefix in ("", "producer.", "consumer.", "admin."):
        assert properties[f"{prefix}security.protocol"] == "SASL_SSL"
        assert 'username="connect"' in properties[f"{prefix}sasl.jaas.config"]


def test_storage_without_users_is_an_error(tmp_path):
    old = load_settings(tmp_path, security={"enabled": True})
    meta = kafka_directory(old) / "data" / "meta.properties"
    meta.parent.mkdir(parents=True)
    meta.touch()
    with pytest.raises(KafkaUsersMissingError) as caught:
        prepare_broker(old, 1)
    assert caught.value.directory == meta.parent


def test_postgres_refuses_unencrypted_connections(settings):
    files = server_files(settings)
    assert "ssl = on" in files["tidemark.conf"]
    assert all(line.startswith("hostssl") for line in files["tidemark_hba.conf"].splitlines())
    assert "PRIVATE KEY" in files["tidemark.pem"]


def test_postgres_finds_its_rules_in_a_directory_with_a_quote(tmp_path):
    settings = load_settings(tmp_path, state_dir=tmp_path / "O'Brien", security={"enabled": True})
    text = server_files(settings)["tidemark.conf"]
    assert f"hba_file = '{tmp_path}/O''Brien/postgres/data/tidemark_hba.conf'" in text


def test_every_client_of_postgres_checks_who_answers(settings):
    address = dsn(settings, database=SHOP, role=SHOP)
    assert "sslmode=verify-full" in address
    assert "ca.pem" in address
    config = connector_config(settings, ["public.users"])
    assert config["database.sslmode"] == "verify-full"
    assert config["database.sslrootcert"] == str(settings.secrets_dir / AUTHORITY)
    write_airflow_config(settings)
    # The driver of Airflow's asynchronous part refuses libpq's options in an address.
    assert "?" not in read_secret(settings, DATABASE_URL_FILE)
    assert airflow_environment(settings)["PGSSLMODE"] == "verify-full"


@pytest.mark.parametrize("enabled", [False, True])
def test_spark_connect_asks_for_a_token(tmp_path, enabled):
    settings = load_settings(tmp_path, spark_jars=jars(tmp_path), security={"enabled": enabled})
    for jar in class_jars(settings).values():
        jar.touch()
    file = tmp_path / "connect.conf"
    prepare_server(settings, file)
    text = file.read_text()
    token = read_secret(settings, CONNECT_TOKEN)
    assert f"spark.connect.authenticate.token={token}\n" in text
    assert file.stat().st_mode & 0o077 == 0
    # The client sends a token without TLS to a host of this very name only.
    assert connect_url(settings).startswith("sc://localhost:")
    assert token not in connect_url(settings)


def test_no_secret_is_on_a_command_line(settings):
    known = [path.read_text() for path in settings.secrets_dir.rglob("*") if path.is_file()]
    parts = [one for one in all_steps(settings) if isinstance(one, Part)]
    texts = [f"{one.command} {dict(one.environment)}" for one in parts]
    assert not [one for one in known for text in texts if one in text]


def test_each_principal_may_do_what_its_part_does(project_manifest):
    rights = lines([*connect_rights(), *declared_rights(project_manifest, offsets_topic="_kept")])
    assert "connect: topic shop.*: create, describe, write" in rights
    assert "connect: group tidemark-connect: describe, read" in rights
    assert "streams: topic shop.public.orders: describe, read" in rights
    assert "streams: topic shop.transaction: describe, read" in rights
    assert "streams: topic _kept: describe, read" in rights
    assert "streams: group spark-kafka-source*: describe, read" in rights
    assert "sinks: topic _tidemark_sinks: create, describe, read, write" in rights
    assert "sinks: transactional_id tidemark-sink-*: describe, write" in rights
    assert "loader: topic cart_events: describe, write" in rights
    written = [one for one in rights if one.startswith("streams") and "write" in one]
    assert not written
    assert not [one for one in rights if one.startswith("loader: topic shop.")]
    assert not [one for one in rights if one.startswith(("admin", "broker"))]


def lines(rights):
    """A line for each thing, with all that may be done to it."""
    found = {}
    for one in rights:
        star = "*" if one.resource_pattern_type is ResourcePatternType.PREFIXED else ""
        who = one.principal.removeprefix("User:")
        thing = f"{who}: {one.restype.name.lower()} {one.name}{star}"
        found.setdefault(thing, set()).add(one.operation.name.lower())
    return [f"{thing}: {', '.join(sorted(done))}" for thing, done in found.items()]


def jars(folder):
    directory = folder / "jars"
    directory.mkdir()
    (directory / "delta-spark_2.13-1.jar").touch()
    return directory


def test_certificates_are_of_this_machine(settings):
    text = read_secret(settings, certificate_name(KAFKA))
    assert text.count("BEGIN CERTIFICATE") == 1
