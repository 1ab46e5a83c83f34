"""The profile that has several of everything: what its parts are told, and that they belong."""

from __future__ import annotations

import base64
import shlex
from pathlib import Path

import pytest

from spark_jobs.access.kafka import Principal, password_name
from spark_jobs.access.secrets import read_secret
from spark_jobs.sections import SecuritySettings
from spark_jobs.settings import REPOSITORY, Settings, load_settings
from spark_jobs.stack.catalog import all_steps, with_needs
from spark_jobs.stack.certificates import KAFKA, ensure_certificate
from spark_jobs.stack.connect import worker_properties
from spark_jobs.stack.connect_rest import prepare_rest
from spark_jobs.stack.connector import connector_config
from spark_jobs.stack.kafka import server_properties
from spark_jobs.stack.parts import Part
from spark_jobs.stack.secrets import ensure_secret
from spark_jobs.stack.spark_cluster import PAGE_SECRET, SECRET
from spark_jobs.storage.conf import session_conf, session_environment
from spark_jobs.storage.log_store import JAR

DAEMONS = ("spark-master", "spark-worker", "spark-worker-2")


@pytest.fixture
def cluster(tmp_path) -> Settings:
    # What `make setup-s3` fetches, and `make setup` does not.
    jars = tmp_path / "s3"
    jars.mkdir()
    for name in ("hadoop-aws-1.jar", JAR):
        (jars / name).touch()
    made = load_settings(REPOSITORY, profile="cluster", state_dir=tmp_path, s3_jars=jars)
    prepare_rest(made)
    return made


@pytest.fixture
def secured(cluster) -> Settings:
    return cluster.model_copy(update={"security": SecuritySettings(enabled=True)})


def parts(settings: Settings) -> dict[str, Part]:
    return {step.name: step for step in all_steps(settings) if isinstance(step, Part)}


def test_one_broker_may_be_gone_and_no_acknowledged_record_with_it(cluster):
    told = [server_properties(cluster, number) for number in (1, 2, 3)]
    assert len({one["controller.quorum.voters"] for one in told}) == 1
    for key in ("node.id", "listeners", "advertised.listeners", "log.dirs"):
        assert len({str(one[key]) for one in told}) == 3
    for one in told:
        assert str(one["controller.quorum.voters"]).count("@127.0.0.1:") == 3
        factors = {key: value for key, value in one.items() if key.endswith("replication.factor")}
        assert set(factors.values()) == {3}
        assert len(factors) == 4
        smallest = [one["min.insync.replicas"], one["transaction.state.log.min.isr"]]
        assert [*smallest, one["share.coordinator.state.topic.min.isr"]] == [2, 2, 2]
    worker = worker_properties(cluster, 2)
    stored = [value for key, value in worker.items() if key.endswith("replication.factor")]
    assert stored == [3, 3, 3]
    assert connector_config(cluster, [])["topic.creation.default.replication.factor"] == "3"


def test_every_broker_is_named_to_clients(cluster):
    ports = cluster.ports
    assert cluster.kafka == ",".join(
        f"127.0.0.1:{port}" for port in (ports.kafka, ports.kafka_2, ports.kafka_3)
    )


def test_the_workers_of_connect_are_one_group_and_listen_apart(cluster):
    told = [worker_properties(cluster, number) for number in (1, 2)]
    assert len({one["group.id"] for one in told}) == 1
    assert len({one["listeners"] for one in told}) == 2


def test_no_two_parts_share_a_port(cluster):
    ports = [port for part in parts(cluster).values() for port in part.ports.values()]
    assert len(ports) == len(set(ports))
    assert {"kafka-3", "connect-2", "spark-master", "spark-worker-2"} <= set(parts(cluster))


def test_spark_starts_once_its_workers_serve_and_the_streams_once_postgres_does(cluster):
    made = parts(cluster)
    workers = {"spark-worker", "spark-worker-2"}
    assert workers <= set(made["spark-connect"].needs)
    assert workers | {"postgres"} <= set(made["streams"].needs)
    started = {step.name for step in with_needs(all_steps(cluster), ["spark-connect"])}
    assert started == {"spark-master", *workers, "spark-connect", "object-store"}


def test_both_applications_fit_the_workers(cluster):
    conf = session_conf(cluster)
    assert conf["spark.driver.host"] == "127.0.0.1"
    assert session_environment(cluster)["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert "-Dorg.apache.avro.limits" in conf["spark.executor.extraJavaOptions"]
    local = cluster.local
    slots = local.spark_workers * local.spark_worker_cores
    assert 2 * int(conf["spark.cores.max"]) <= slots
    per_worker = local.spark_worker_cores // int(conf["spark.executor.cores"])
    assert per_worker * int(conf["spark.executor.memory"].removesuffix("g")) <= int(
        local.spark_worker_memory.removesuffix("g")
    )


def test_the_control_database_s_url_holds_no_password(cluster):
    url = cluster.control_url
    assert url.startswith(f"postgresql+psycopg://control@127.0.0.1:{cluster.ports.postgres}/")
    assert str(cluster.control_passfile) in url


@pytest.mark.parametrize("mode", ["cluster", "secured"])
def test_spark_s_processes_ask_each_other_for_a_secret_that_no_command_line_shows(mode, request):
    settings = request.getfixturevalue(mode)
    made = parts(settings)
    for name in ("spark-master", "spark-worker", "spark-worker-2", "spark-connect"):
        made[name].prepare()
    secret = read_secret(settings, SECRET)
    told = [settings.state / "spark" / f"{one}.conf" for one in DAEMONS] + [
        settings.state / "spark/connect.conf"
    ]
    for file in told:
        text = file.read_text()
        assert "spark.authenticate=true\n" in text
        assert f"spark.authenticate.secret={secret}\n" in text
        encrypted = "spark.network.crypto.enabled=true\n" in text
        assert encrypted == settings.security.enabled
        assert file.stat().st_mode & 0o077 == 0
    # PySpark puts the whole configuration on the command line of a driver.
    assert secret not in str(session_conf(settings))
    told_streams = dict(made["streams"].environment)["PYSPARK_SUBMIT_ARGS"]
    assert secret not in told_streams
    file = Path(shlex.split(told_streams)[1])
    assert file.read_text() == f"spark.authenticate.secret={secret}\n"
    assert file.stat().st_mode & 0o077 == 0


def test_an_external_spark_master_gets_no_authentication_settings(cluster):
    spark = cluster.spark.model_copy(update={"master": "spark://127.0.0.1:7077"})
    other = load_settings(REPOSITORY, state_dir=cluster.state, spark=spark.model_dump())
    assert "spark.authenticate" not in session_conf(other)
    assert session_environment(other) == {"SPARK_LOCAL_IP": "127.0.0.1"}
    alone = load_settings(REPOSITORY, state_dir=cluster.state, security={"enabled": True})
    assert session_conf(alone)["spark.authenticate"] == "true"
    assert "spark.io.encryption.enabled" not in session_conf(alone)


def test_the_pages_of_the_cluster_s_daemons_ask_for_a_signed_call(cluster):
    parts(cluster)["spark-master"].prepare()
    text = (cluster.state / "spark/spark-master.conf").read_text()
    assert "spark.ui.filters=org.apache.spark.ui.JWSFilter\n" in text
    key = base64.urlsafe_b64decode(read_secret(cluster, PAGE_SECRET))
    assert len(key) == 32
    assert "spark.master.rest.enabled=false\n" in text


def test_the_control_database_is_reached_by_tls_where_servers_must_ask(secured):
    assert "sslmode=verify-full" in secured.control_url
    assert "ca.pem" in secured.control_url


def test_every_broker_asks_and_every_controller_lets_the_brokers_in(secured):
    ensure_certificate(secured, KAFKA)
    for principal in Principal:
        ensure_secret(secured, password_name(principal))
    for number in (1, 2, 3):
        told = server_properties(secured, number)
        assert "PLAINTEXT" not in str(told)
        assert told["listener.name.controller.ssl.client.auth"] == "required"
        assert told["inter.broker.listener.name"] == "SASL_SSL"
