"""The kustomize base: current, accepted by Kubernetes' schemas, like the stack, and safe."""

from __future__ import annotations

import itertools
import json
import os
import re

import kubernetes_validate
import pytest
import yaml

from spark_jobs.access.secrets import (
    AIRFLOW_ANNOUNCER,
    AUTHORITY,
    DEBEZIUM_PLACEHOLDER,
    unavailable_placeholder,
)
from spark_jobs.settings import LOOPBACK, REPOSITORY, load_settings
from spark_jobs.stack import airflow_database
from spark_jobs.stack.certificates import ENDPOINT, certificate_name
from spark_jobs.stack.compose import HOME, IMAGES, STATE, shipped_settings
from spark_jobs.stack.endpoint import SECRET
from spark_jobs.stack.foreground import main, stack_steps
from spark_jobs.stack.kubernetes import BASE, render
from spark_jobs.stack.parts import Part
from spark_jobs.stack.placeholder import ensure_placeholder, placeholder_config
from spark_jobs.stack.workloads import CONTROL_DB, SECRET_KEYS, WORKLOADS

# The oldest with all that is used, and the newest that the schemas at hand know.
VERSIONS = ("1.29", kubernetes_validate.latest_version())
OVERLAY = REPOSITORY / "kubernetes/overlays/example/kustomization.yaml"
# Somebody else's on a cluster.
EXTERNAL = {"postgres", "redis", "cassandra", "kafka"}
TMP = "/tmp"  # noqa: S108 - a mount


@pytest.fixture
def shipped(monkeypatch):
    """The settings that the shipped files are written for: the repository's, nobody's own."""
    for name in [name for name in os.environ if name.startswith("TIDEMARK_")]:
        monkeypatch.delenv(name)
    return shipped_settings()


@pytest.fixture(scope="module")
def resources() -> list[dict]:
    files = yaml.safe_load((BASE / "kustomization.yaml").read_text())["resources"]
    return [one for name in files for one in yaml.safe_load_all((BASE / name).read_text())]


@pytest.fixture(scope="module")
def pods(resources) -> dict[str, dict]:
    """The pod's template of each workload, by name."""
    return {
        one["metadata"]["name"]: one["spec"]["template"]
        for one in resources
        if one["kind"] in {"Deployment", "StatefulSet", "Job"}
    }


def containers(template: dict) -> list[dict]:
    return [*template["spec"].get("initContainers", []), *template["spec"]["containers"]]


def of_kind(resources: list[dict], kind: str) -> dict[str, dict]:
    return {one["metadata"]["name"]: one for one in resources if one["kind"] == kind}


def variables(name: str) -> dict[str, str]:
    lines = [one for one in (BASE / name).read_text().splitlines() if not one.startswith("#")]
    return dict(one.split("=", 1) for one in lines)


def test_the_files_are_what_the_stack_says_now(shipped) -> None:
    remedy = "run: python -m spark_jobs.stack.kubernetes"
    assert {path.name: path.read_text() for path in BASE.iterdir()} == render(shipped), remedy


@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_accepts_every_resource(resources, version) -> None:
    for one in resources:
        kubernetes_validate.validate(one, version, strict=True)
    wrong = json.loads(json.dumps(of_kind(resources, "StatefulSet")["streams"]))
    wrong["spec"]["template"]["spec"]["containers"][0]["livenesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError, match="livenesProbe"):
        kubernetes_validate.validate(wrong, version, strict=True)


def test_every_part_of_ours_is_a_workload_that_runs_it(shipped, pods) -> None:
    parts = {step.name: step for step in stack_steps(shipped) if isinstance(step, Part)}
    assert set(parts) == set(WORKLOADS) | EXTERNAL
    for name in WORKLOADS:
        (one,) = pods[name]["spec"]["containers"]
        assert one["image"].split(":")[0] == f"tidemark-{IMAGES[name]}"
        if name.startswith("airflow-"):
            assert one["command"] == [str(HOME / ".venv/bin/airflow")]
            assert one["args"] == [name.removeprefix("airflow-")]
        else:
            assert "command" not in one
            assert one["args"] == ["run", name]
        assert pods[name]["spec"]["terminationGracePeriodSeconds"] == parts[name].stop_seconds


def test_what_a_part_needs_is_done_before_it_starts(pods) -> None:
    done = {name: [one["name"] for one in containers(pod)[:-1]] for name, pod in pods.items()}
    assert done == {
        "streams": ["manifest", "topics"],
        "spark-connect": [],
        "endpoint": ["manifest"],
        "connect": [],
        "connector": ["manifest"],
        "airflow-scheduler": ["migration", "manifest"],
        "airflow-dag-processor": ["migrated", "manifest"],
        "airflow-api-server": ["migrated"],
        "airflow-triggerer": ["migrated"],
    }


def test_pods_that_may_ask_the_control_database_know_what_was_applied(pods) -> None:
    """Each pod with a manifest; those that keep running also follow later deployments."""
    for name, template in pods.items():
        steps = {one["name"]: one for one in containers(template)}
        if "manifest" not in steps:
            continue
        for part in {"manifest", name} - {"connector"}:
            assert CONTROL_DB in {one["name"] for one in steps[part].get("env", [])}, (name, part)


def test_the_endpoint_has_an_account_and_a_key_of_its_own(pods) -> None:
    accounts = {name: one["spec"]["securityContext"]["runAsUser"] for name, one in pods.items()}
    assert accounts.pop("endpoint") not in set(accounts.values())
    stores = {
        name: source["secretRef"]["name"]
        for name, pod in pods.items()
        for one in containers(pod)
        for source in one["envFrom"]
        if "secretRef" in source
    }
    assert stores.pop("endpoint") not in set(stores.values())
    # Java looks each account up by its number.
    image = (REPOSITORY / "docker/base/Dockerfile").read_text()
    numbers = {one["spec"]["securityContext"]["runAsUser"] for one in pods.values()}
    assert numbers == {int(one) for one in re.findall(r"useradd --uid (\d+)", image)}


def test_single_writers_have_one_replica(resources) -> None:
    alone = of_kind(resources, "StatefulSet")
    assert set(alone) == {"streams", "airflow-scheduler", "airflow-triggerer"}
    assert {one["spec"]["replicas"] for one in alone.values()} == {1}
    several = {
        name
        for name, one in of_kind(resources, "Deployment").items()
        if one["spec"]["replicas"] > 1
    }
    # A budget for a single pod would keep its node from being emptied, or say nothing.
    assert set(of_kind(resources, "PodDisruptionBudget")) == several
    assert several == {"airflow-api-server", "connect"}


def test_liveness_is_judged_by_what_a_part_puts_out(pods) -> None:
    for name in WORKLOADS:
        (one,) = pods[name]["spec"]["containers"]
        alive = one["livenessProbe"]
        command = alive.get("exec", {}).get("command", [])
        assert (
            command[1:] == ["-m", "spark_jobs.stack.foreground", "alive", name]
            or command[1:3] == ["jobs", "check"]
            or alive["httpGet"]["path"] in {"/health", "/api/v2/monitor/health"}
        )
        # Minutes, so that a slow machine or a database that restarts ends nothing.
        assert alive["periodSeconds"] * alive["failureThreshold"] >= 300
        assert alive["timeoutSeconds"] < alive["periodSeconds"]
    assert "readinessProbe" in pods["streams"]["spec"]["containers"][0]


def test_a_container_is_an_ordinary_user_that_can_write_to_its_volumes_only(pods) -> None:
    for template in pods.values():
        spec = template["spec"]
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["runAsUser"] > 0
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert spec["automountServiceAccountToken"] is False
        for one in containers(template):
            assert one["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            mounted = {mount["mountPath"] for mount in one["volumeMounts"]}
            assert {TMP, str(STATE)} <= mounted
            assert one["resources"]["requests"]["memory"] == one["resources"]["limits"]["memory"]
            assert set(one["resources"]["requests"]) == {"cpu", "memory"}
            assert not one["image"].endswith(":latest")
            assert ":" in one["image"]


def test_a_volume_is_there_for_each_mount(resources, pods) -> None:
    claims = of_kind(resources, "StatefulSet")
    for name, template in pods.items():
        there = {one["name"] for one in template["spec"]["volumes"]}
        there |= {
            one["metadata"]["name"]
            for one in claims.get(name, {"spec": {}})["spec"].get("volumeClaimTemplates", [])
        }
        for one in containers(template):
            assert {mount["name"] for mount in one["volumeMounts"]} == there


def test_a_jvm_has_room_beside_its_heap(shipped, pods) -> None:
    heaps = {
        "streams": shipped.spark.driver_memory,
        "spark-connect": shipped.spark.connect_memory,
        "endpoint": shipped.endpoint.memory,
    }
    for name, heap in heaps.items():
        memory = pods[name]["spec"]["containers"][0]["resources"]["limits"]["memory"]
        assert int(memory.removesuffix("Gi")) >= 1.5 * int(heap.removesuffix("g"))


def test_secrets_are_references_and_each_is_documented(resources, pods) -> None:
    told = (REPOSITORY / "docs/deploying.md").read_text()
    assert not of_kind(resources, "Secret")
    for template in pods.values():
        for one in containers(template):
            for variable in one.get("env", []):
                secret = variable.get("valueFrom", {}).get("secretKeyRef")
                assert secret or variable["name"] not in SECRET_KEYS
                assert secret is None or f"`{secret['key']}`" in told
        for volume in template["spec"]["volumes"]:
            secret = volume.get("secret", {})
            assert f"`{secret.get('secretName', 'tidemark')}`" in told
            assert all(f"`{item['key']}`" in told for item in secret.get("items", []))
    given = {**variables("settings.env"), **variables("airflow.env")}
    for name, value in given.items():
        if re.search("PASSWORD|SECRET|TOKEN|KEY|CONN(?!ECT__(URL|RESTART_FAILED)$)|DB", name):
            assert re.fullmatch(rf"cat {STATE}/secrets/([a-z-]+)", value), name
            assert f"`{value.rpartition('/')[2]}`" in told


def test_network_policies_admit_only_known_callers(resources, pods) -> None:
    policies = of_kind(resources, "NetworkPolicy")
    assert set(policies) == set(pods)
    callers = {}
    for name, one in policies.items():
        assert one["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/name"] == name
        callers[name] = [
            caller["podSelector"]["matchLabels"]["app.kubernetes.io/name"]
            for rule in one["spec"]["ingress"]
            for caller in rule.get("from", [{"podSelector": {"matchLabels": ANYBODY}}])
        ]
    assert callers["streams"] == callers["connector"] == callers["airflow-dag-processor"] == []
    assert callers["airflow-api-server"] == callers["endpoint"] == ["anybody"]
    assert set(itertools.chain(*callers.values())) <= {*pods, "anybody"}
    # Its DAG reports a connector that failed, and the streams restart it.
    assert {"airflow-scheduler", "streams"} <= set(callers["connect"])


ANYBODY = {"app.kubernetes.io/name": "anybody"}


def test_a_service_leads_to_a_port_that_its_part_listens_on(shipped, resources, pods) -> None:
    services = of_kind(resources, "Service")
    for name, one in services.items():
        assert one["spec"]["selector"] == pods[name]["metadata"]["labels"]
        for port in one["spec"].get("ports", []):
            (container,) = pods[name]["spec"]["containers"]
            assert {"name": port["targetPort"], "containerPort": port["port"]} in container["ports"]
    for name, one in of_kind(resources, "StatefulSet").items():
        assert one["spec"]["serviceName"] in services
        assert services[name]["spec"]["clusterIP"] == "None"
    called = {
        "spark-connect": shipped.ports.spark_connect,
        "airflow-api-server": shipped.ports.airflow,
        "endpoint": shipped.ports.endpoint,
        "connect": shipped.ports.connect,
    }
    assert {name: services[name]["spec"]["ports"][0]["port"] for name in called} == called


def test_the_settings_of_the_pods_are_settings(monkeypatch, shipped) -> None:
    for name, value in {**variables("settings.env"), **variables("airflow.env")}.items():
        if name.startswith("TIDEMARK_"):
            monkeypatch.setenv(name, value)
    worker = yaml.safe_load_all((BASE / "connect.yaml").read_text())
    environment = next(worker)["spec"]["template"]["spec"]["containers"][0]["env"]
    monkeypatch.setenv("TIDEMARK_KAFKA_CONNECT__CONF", environment[1]["value"])
    loaded = load_settings()
    # A file system's tables are guarded by locks that pods do not share.
    assert loaded.lake.startswith("s3a://")
    assert loaded.spark.remote == f"sc://spark-connect:{shipped.ports.spark_connect}/;use_ssl=false"
    assert loaded.kafka_connect.conf["rest.advertised.host.name"] == "$(POD_IP)"
    assert loaded.streams == shipped.streams
    # The workers are pods of this base, so no operator of another Connect restarts the connector.
    assert loaded.kafka_connect.restart_failed


def test_the_endpoint_serves_with_the_files_of_its_secret(monkeypatch, shipped, pods) -> None:
    (container,) = pods["endpoint"]["spec"]["containers"]
    for one in container["env"]:
        monkeypatch.setenv(one["name"], one.get("value", "sqlite:///control.db"))
    loaded = load_settings()
    (secret,) = [one["secret"] for one in pods["endpoint"]["spec"]["volumes"] if "secret" in one]
    wanted = {SECRET, AUTHORITY, certificate_name(ENDPOINT)}
    assert {one["path"] for one in secret["items"]} == wanted
    (mounted,) = [one for one in container["volumeMounts"] if one["name"] == "secrets"]
    inside = shipped.model_copy(update={"state_dir": STATE})
    assert mounted["mountPath"] == str(inside.secrets_dir)
    assert loaded.endpoint.host != LOOPBACK
    assert loaded.security.enabled


def test_all_pods_have_one_placeholder_for_values_that_were_not_sent(
    monkeypatch, tmp_path, pods
) -> None:
    """Each pod would choose its own, and fail where its secrets are read-only."""
    for name, value in variables("settings.env").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path))
    inside = load_settings()
    ensure_placeholder(inside)
    assert not inside.secrets_dir.exists()
    assert unavailable_placeholder(inside) == DEBEZIUM_PLACEHOLDER
    assert placeholder_config(inside) == {}
    (connector,) = pods["connector"]["spec"]["containers"]
    assert "TIDEMARK_KAFKA_CONNECT__URL" not in {one["name"] for one in connector["env"]}


def test_the_migration_understands_what_it_is_given(monkeypatch, tmp_path, shipped, pods) -> None:
    steps = {one["name"]: one for one in pods["airflow-scheduler"]["spec"]["initContainers"]}
    files = tmp_path / "secrets"
    files.mkdir()
    (files / "airflow-users.json").write_text('{"admin": {"role": "Admin", "password": "a"}}')
    (files / AIRFLOW_ANNOUNCER).write_text("of the announcer\n")
    done: dict[str, object] = {}
    monkeypatch.setattr(airflow_database, "migrate", lambda: None)
    monkeypatch.setattr(airflow_database, "make_users", lambda users, **_: done.update(users=users))
    monkeypatch.setattr(
        airflow_database, "make_announcer", lambda name, word: done.update({name: word})
    )
    monkeypatch.setattr(airflow_database, "make_pools", lambda slots: done.update(pools=slots))
    given = [one.replace(str(STATE), str(tmp_path)) for one in steps["migration"]["args"]]
    monkeypatch.setattr("sys.argv", ["airflow_database", *given])
    airflow_database.main()
    assert done == {
        "users": {"admin": {"role": "Admin", "password": "a"}},
        "announcer": "of the announcer",
        "pools": dict(shipped.airflow.pools),
    }
    # Without the secret there is no such user, and everything else is as usual.
    (files / AIRFLOW_ANNOUNCER).unlink()
    done.clear()
    airflow_database.main()
    assert set(done) == {"users", "pools"}


def test_the_streams_know_airflow_and_the_password_for_its_events(monkeypatch, pods) -> None:
    spec = pods["streams"]["spec"]
    (secret,) = [one["secret"] for one in spec["volumes"] if "secret" in one]
    assert [one["path"] for one in secret["items"]] == [AIRFLOW_ANNOUNCER]
    # They do their work without it too.
    assert secret["optional"] is True
    (mounted,) = [one for one in spec["containers"][0]["volumeMounts"] if one["name"] == "secrets"]
    assert mounted["mountPath"] == f"{STATE}/secrets"
    sources = [one.get("configMapRef", {}).get("name") for one in spec["containers"][0]["envFrom"]]
    assert "tidemark-airflow" not in sources
    for name, value in variables("settings.env").items():
        monkeypatch.setenv(name, value)
    address = variables("airflow.env")["AIRFLOW__API__BASE_URL"]
    assert load_settings().airflow.url == address


def test_nothing_names_the_machine_that_wrote_the_files() -> None:
    for path in BASE.iterdir():
        assert str(REPOSITORY) not in path.read_text(), path


def test_the_overlay_changes_what_the_base_has(resources) -> None:
    overlay = yaml.safe_load(OVERLAY.read_text())
    base = yaml.safe_load((BASE / "kustomization.yaml").read_text())
    assert [(OVERLAY.parent / one).resolve() for one in overlay["resources"]] == [BASE]
    used = {
        one["image"].split(":")[0]
        for resource in resources
        if "template" in resource.get("spec", {})
        for one in containers(resource["spec"]["template"])
    }
    assert {one["name"] for one in overlay["images"]} == used
    maps = {one["name"] for one in base["configMapGenerator"]}
    assert {one["name"] for one in overlay["configMapGenerator"]} == maps
    for patch in overlay["patches"]:
        target = patch["target"]
        assert target["name"] in of_kind(resources, target["kind"])
    known = {**variables("settings.env"), **variables("airflow.env")}
    changed = [
        line.split("=")[0] for one in overlay["configMapGenerator"] for line in one["literals"]
    ]
    assert {name for name in changed if name not in known} == {"TIDEMARK_SPARK__DRIVER_MEMORY"}


def test_an_application_that_has_not_started_is_not_alive(monkeypatch, tmp_path, capsys) -> None:
    monkeypatch.setenv("TIDEMARK_PROJECT", str(REPOSITORY))
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    assert main(("alive", "streams")) == 1
    assert "has not started" in capsys.readouterr().out
