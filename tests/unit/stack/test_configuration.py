"""The configuration of the parts: loopback only, the settings' ports, the settings themselves."""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_origin

import pytest
from pydantic import BaseModel

from spark_jobs.settings import Settings, load_settings
from spark_jobs.stack.airflow_config import airflow_environment, airflow_options
from spark_jobs.stack.catalog import ON_DEMAND, all_steps, check_part_names, with_needs
from spark_jobs.stack.connect import worker_properties
from spark_jobs.stack.connect_rest import prepare_rest
from spark_jobs.stack.connector import captured_tables, connector_config
from spark_jobs.stack.environment import FREE_KEYS, stack_environment
from spark_jobs.stack.errors import UnknownPartError
from spark_jobs.stack.java import write_properties
from spark_jobs.stack.kafka import server_properties
from spark_jobs.stack.parts import Part
from spark_jobs.stack.supervisor import (
    SOCKET_PATH_BYTES,
    Supervisor,
    render_config,
    socket_path,
)
from spark_jobs.storage.rights import DIRECTORIES, FILES


@pytest.fixture
def settings(tmp_path):
    return load_settings(tmp_path, ports={"kafka": 1111, "connect": 2222})


def test_the_broker_listens_on_loopback_at_the_ports_of_the_settings(settings):
    properties = server_properties(settings, 1)
    assert properties["advertised.listeners"] == "PLAINTEXT://127.0.0.1:1111"
    for listener in str(properties["listeners"]).split(","):
        assert "://127.0.0.1:" in listener
    assert properties["auto.create.topics.enable"] == "false"


def test_the_worker_requires_a_client_certificate_on_loopback(settings):
    prepare_rest(settings)
    told = worker_properties(settings, 1)
    assert told["listeners"] == "https://127.0.0.1:2222"
    assert told["listeners.https.ssl.client.auth"] == "required"
    files = [one for key, one in told.items() if key.endswith("store.location")]
    assert {one.stat().st_mode & 0o777 for one in files} == {0o600}


def test_a_worker_on_another_machine_is_an_error(tmp_path):
    own = {"listeners": "http://0.0.0.0:8083"}
    settings = load_settings(tmp_path, kafka_connect={"conf": own})
    assert worker_properties(settings, 1)["listeners"] == own["listeners"]
    assert worker_properties(settings, 1)["group.id"] == "tidemark-connect"


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("", ("127.0.0.1", "25432", "shop")),
        ("postgresql://reader:pw@db.internal/sales", ("db.internal", "5432", "sales")),
        ("postgresql://reader:pw@db.internal:6432/sales", ("db.internal", "6432", "sales")),
    ],
)
def test_the_connector_captures_the_database_that_is_reconciled(tmp_path, url, address):
    config = connector_config(load_settings(tmp_path, source_database=url), ["public.orders"])
    assert tuple(config[f"database.{key}"] for key in ("hostname", "port", "dbname")) == address
    assert config["database.user"] == "debezium"
    assert "pw" not in str(config)


def test_the_connector_loses_nothing_by_default_settings(settings, tmp_path):
    config = connector_config(settings, ["public.orders", "public.users"])
    assert config["table.include.list"] == r"public\.orders,public\.users"
    assert config["skipped.operations"] == "none"
    assert config["offset.mismatch.strategy"] == "trust_offset"
    assert int(config["heartbeat.interval.ms"]) > 0
    # Its own messages are in no topic, of a worker elsewhere neither.
    elsewhere = load_settings(tmp_path, kafka_connect={"url": "http://connect"})
    for one in (config, connector_config(elsewhere, ["public.orders"])):
        assert f"'{one['message.prefix.exclude.list']}'" in one["heartbeat.action.query"]


def test_the_project_of_the_repository_captures_the_shop(project_manifest):
    assert all(table.startswith("public.") for table in captured_tables(project_manifest))


def test_airflow_is_reached_by_its_tasks_where_it_listens(settings):
    options = airflow_options(settings)
    address = f"http://{options['api']['host']}:{options['api']['port']}"
    assert options["api"]["host"] == "127.0.0.1"
    assert options["api"]["base_url"] == address
    assert options["core"]["execution_api_server_url"] == f"{address}/execution/"


@pytest.mark.parametrize("profile", ["", "small"])
def test_a_part_loads_the_settings_that_started_the_stack(tmp_path, monkeypatch, profile):
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles/small.yml").write_text(
        "{local: {spark_workers: 1}, spark: {driver_memory: 9g, conf: {spark.cores.max: '1'}}}"
    )
    started = load_settings(
        tmp_path,
        state_dir=tmp_path / "state",
        ports={"kafka": 1111},
        spark={"conf": {"spark.ui.enabled": "false"}, "driver_memory": "1g"},
        gold={"every_override": "1 minute"},
        alerts={"notifiers": [{"notifier": "a.B", "arguments": {"To": "x"}}]},
        lineage={"transport": {"type": "http", "auth": {"apiKey": "k"}}},
        profile=profile,
    )
    environment = stack_environment(started)
    for name in [name for name in os.environ if name.startswith("TIDEMARK_")]:
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert load_settings().model_dump() == started.model_dump()


def test_a_part_loads_every_value_as_the_project_has_it(tmp_path, monkeypatch):
    """A number that became a text would be another SQL, in half of the processes."""
    (tmp_path / "tidemark.yml").write_text(
        "variables: {least: 5, share: 0.5, 'on': true, text: '5', word: 'true', Region: EU,"
        " a__b: 1, empty: '', nothing: 'null'}\n"
        "airflow: {url: }\n"
    )
    started = load_settings(tmp_path, state_dir=tmp_path / "state")
    for name in [name for name in os.environ if name.startswith("TIDEMARK_")]:
        monkeypatch.delenv(name)
    for name, value in stack_environment(started).items():
        monkeypatch.setenv(name, value)
    loaded = load_settings()
    assert loaded.variables == started.variables
    assert {name: type(one) for name, one in loaded.variables.items()} == {
        name: type(one) for name, one in started.variables.items()
    }
    assert loaded.airflow.url is None
    assert loaded.model_dump() == started.model_dump()


def mappings(model: type[BaseModel], path: str = "TIDEMARK") -> Iterator[str]:
    """The variables of the settings whose keys are arbitrary."""
    for name, one in model.model_fields.items():
        variable = f"{path}_{name.upper()}" if path == "TIDEMARK" else f"{path}__{name.upper()}"
        if isinstance(one.annotation, type) and issubclass(one.annotation, BaseModel):
            yield from mappings(one.annotation, variable)
        elif get_origin(one.annotation) is dict:
            yield variable


def test_keys_that_are_free_are_kept_in_one_variable():
    found = list(mappings(Settings))
    assert len(found) >= 5
    assert [one for one in found if not one.endswith(FREE_KEYS)] == []


def test_nothing_of_the_callers_environment_reaches_a_part_by_accident(settings, monkeypatch):
    monkeypatch.setenv("AIRFLOW__CORE__FERNET_KEY", "x")
    monkeypatch.setenv("PYTHONSTARTUP", "x")
    assert {"AIRFLOW__CORE__FERNET_KEY", "PYTHONSTARTUP"}.isdisjoint(stack_environment(settings))


def test_parts_get_the_key_of_an_external_object_store_and_no_other(tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "mine")
    local = load_settings(tmp_path)
    assert "AWS_ACCESS_KEY_ID" not in stack_environment(local)
    # The local store's key is in a file, which is read at each start of a part.
    proxied = load_settings(tmp_path, local={"object_store": True})
    assert "AWS_ACCESS_KEY_ID" not in stack_environment(proxied)
    external = load_settings(tmp_path, lake_root="s3a://company/lake")
    assert stack_environment(external)["AWS_ACCESS_KEY_ID"] == "mine"


def test_supervisord_expands_nothing_in_a_command(settings):
    part = Part("odd", ("run", "100%", "a b"), probe=lambda: None, environment={"A": "5%"})
    parser = configparser.RawConfigParser(inline_comment_prefixes=(" ;",))
    parser.read_string(render_config(Supervisor(settings), [part], {}))
    section = parser["program:odd"]
    assert section["command"].endswith("run 100%% 'a b'")
    assert section["environment"] == 'A="5%%"'
    assert section["autorestart"] == "true"
    assert section["killasgroup"] == "true"


def test_a_setting_of_several_lines_is_no_line_of_the_configuration(tmp_path):
    (tmp_path / "tidemark.yml").write_text("spark:\n  java_options: |\n    -Da=1\n    [x]\n")
    settings = load_settings(tmp_path)
    text = render_config(Supervisor(settings), [], stack_environment(settings))
    parser = configparser.RawConfigParser(inline_comment_prefixes=(" ;",))
    parser.read_string(text)
    assert parser.sections() == ["unix_http_server", "supervisord", "rpcinterface:supervisor"]


def test_a_part_with_its_own_account_needs_no_launcher(settings):
    part = Part("own", ("server",), probe=lambda: None, user="postgres")
    text = render_config(Supervisor(settings), [part], {})
    assert "command=server\n" in text
    assert "user=postgres\n" in text


def test_parts_run_with_an_owner_only_umask(settings):
    assert "umask=077\n" in render_config(Supervisor(settings), [], {})


def test_every_directory_that_a_part_writes_is_closed_to_other_accounts(settings):
    """A new one would else be open where its part does not close it."""
    texts = [render_config(Supervisor(settings), all_steps_of(settings), {})]
    texts += [str(value) for part in airflow_options(settings).values() for value in part.values()]
    found = set(re.findall(rf"{re.escape(str(settings.state))}/([\w.-]+)", "\n".join(texts)))
    assert found - {"postgres", "lake"} <= {*DIRECTORIES, *FILES}


def all_steps_of(settings):
    return [step for step in all_steps(settings) if isinstance(step, Part)]


def test_other_settings_make_another_configuration(settings, tmp_path):
    other = load_settings(tmp_path, spark={"driver_memory": "1g"})
    texts = {
        render_config(Supervisor(one), [], stack_environment(one)) for one in (settings, other)
    }
    assert len(texts) == 2


def test_the_control_socket_stays_within_the_kernels_limit():
    shallow = Path("/state")
    assert socket_path(shallow) == shallow / "supervisor" / "control.sock"
    deep = shallow / ("x" * SOCKET_PATH_BYTES)
    assert len(os.fsencode(socket_path(deep))) < SOCKET_PATH_BYTES
    assert socket_path(deep) != socket_path(deep / "other")


def test_a_part_brings_what_it_needs(settings):
    names = [step.name for step in with_needs(all_steps(settings), ["airflow-scheduler"])]
    assert names == ["postgres", "airflow-database", "airflow-api-server", "airflow-scheduler"]
    streams = {step.name for step in with_needs(all_steps(settings), ["streams"])}
    assert streams == {"postgres", "redis", "kafka", "connect", "topics", "connector", "streams"}


def test_all_parts_but_those_on_demand_are_chosen_by_default(settings):
    steps = all_steps(settings)
    parts = [step.name for step in steps if isinstance(step, Part)]
    chosen = check_part_names(steps, [])
    assert list(chosen) == [name for name in parts if name not in ON_DEMAND]
    assert {*chosen, *ON_DEMAND} == set(parts)
    assert check_part_names(steps, ["kafka", "postgres"]) == ("postgres", "kafka")


def test_an_unknown_part_is_reported_with_a_suggestion(settings):
    with pytest.raises(UnknownPartError) as caught:
        check_part_names(all_steps(settings), ["kafak"])
    assert caught.value.name == "kafak"
    assert "kafka" in caught.value.hint


def test_airflow_s_tasks_name_the_server_and_start_no_spark_of_their_own(settings, tmp_path):
    named = airflow_environment(settings)["TIDEMARK_SPARK__REMOTE"]
    assert named == f"sc://localhost:{settings.ports.spark_connect}"
    other = load_settings(tmp_path, spark={"remote": "sc://elsewhere:15002"})
    assert airflow_environment(other)["TIDEMARK_SPARK__REMOTE"] == "sc://elsewhere:15002"
    submitting = load_settings(tmp_path, airflow={"executor_mode": "submit"})
    assert "TIDEMARK_SPARK__REMOTE" not in airflow_environment(submitting)


def test_a_worker_starts_where_no_broker_and_no_database_were_prepared(tmp_path):
    settings = load_settings(tmp_path, state_dir=tmp_path / "state")
    [worker] = [one for one in all_steps(settings) if one.name == "connect"]
    worker.prepare()
    properties = (tmp_path / "state/kafka/connect.properties").read_text()
    (allowed,) = [line for line in properties.splitlines() if "allowed.paths" in line]
    assert Path(allowed.partition("=")[2]).is_dir()
    (log4j,) = [one for one in worker.command if one.startswith("-Dlog4j2")]
    assert Path(log4j.partition("=")[2]).is_file()


def test_changed_settings_are_listed_without_their_values(settings):
    supervisor = Supervisor(settings)
    part = Part(name="a", command=("sleep", "1"), probe=lambda: None)
    before = {"TIDEMARK_PORTS__KAFKA": "1", "TIDEMARK_SOURCE_DATABASE": "secret"}
    assert supervisor.differences([part], before) == []
    supervisor.config.parent.mkdir(parents=True, exist_ok=True)
    supervisor.config.write_text(render_config(supervisor, [part], before))
    after = {"TIDEMARK_PORTS__KAFKA": "2", "TIDEMARK_GOLD__LEASE_SECONDS": "3"}
    other = Part(name="a", command=("sleep", "2"), probe=lambda: None)

    assert supervisor.differences([part], before) == []
    assert supervisor.differences([part], after) == [
        "gold.lease_seconds",
        "ports.kafka",
        "source_database",
    ]
    assert supervisor.differences([other], before) == ["part a"]


def test_a_table_of_any_name_is_captured_and_no_other(settings):
    config = connector_config(settings, ["public.order$items", "public.a+b"])
    patterns = config["table.include.list"].split(",")
    assert [bool(re.fullmatch(one, "public.order$items")) for one in patterns] == [False, True]
    assert [bool(re.fullmatch(one, "public.a+b")) for one in patterns] == [True, False]


def test_a_properties_file_says_what_java_reads(tmp_path):
    """Java reads Latin-1 and escapes; a directory of another name would be made and used."""
    values = {"log.dirs": Path("/home/m\u00fcller/\U0001f600"), "rule": r"RULE:^\d+$", "b": " x\ny"}
    write_properties(tmp_path / "server.properties", values)
    lines = (tmp_path / "server.properties").read_bytes().decode("ascii").splitlines()
    assert lines == [
        r"log.dirs=/home/m\u00fcller/\ud83d\ude00",
        r"rule=RULE:^\\d+$",
        r"b=\ x\ny",
    ]
