"""Pod templates of the stack's parts: containers and probes."""

from __future__ import annotations

from collections.abc import Sequence

from spark_jobs.stack.compose import (
    HOME,
    LOOK_SECONDS,
    LOOK_TIMEOUT,
    PYTHON,
    START_SECONDS,
    STATE,
)
from spark_jobs.stack.parts import Part
from spark_jobs.stack.resources import PROJECT, Described, labels
from spark_jobs.stack.workloads import (
    AIRFLOW_FILES,
    OPTIONAL,
    SECRET,
    SECRET_KEYS,
    Workload,
)

SETTINGS = "tidemark-settings"
AIRFLOW_SETTINGS = "tidemark-airflow"
FOREGROUND = (PYTHON, "-m", "spark_jobs.stack.foreground")
AIRFLOW = str(HOME / ".venv/bin/airflow")
# On the local stack all processes share the log directory; here the api-server requests logs.
NO_LOG_SERVER = "--skip-serve-logs"
MIGRATION_SECONDS = 600
# Consecutive failures before a running process is restarted.
PATIENCE = 5


def pod(
    name: str, workload: Workload, *, container: Described, inits: Sequence[Described]
) -> Described:
    """A pod's template: unprivileged user, read-only except for its volumes, no token."""
    described: Described = {
        "serviceAccountName": PROJECT,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": workload.user,
            "runAsGroup": workload.user,
            "fsGroup": workload.user,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "initContainers": [one | common(workload) for one in inits],
        "containers": [container | common(workload)],
        "volumes": volumes(workload),
    }
    if workload.replicas > 1:
        described["affinity"] = apart(name)
    if not inits:
        del described["initContainers"]
    return {"metadata": {"labels": labels(name)}, "spec": described}


def part_container(part: Part, workload: Workload, *, image: str) -> Described:
    """The part itself."""
    described: Described = {"name": part.name, "image": image}
    if part.name.startswith("airflow-"):
        # It is configured by variables here, so there is nothing to prepare.
        arguments = [one for one in part.command[1:] if one != NO_LOG_SERVER]
        described |= {"command": [AIRFLOW], "args": arguments}
    else:
        described |= {"args": ["run", part.name]}
    port = called_port(part, workload)
    if port is not None:
        described["ports"] = [{"name": "main", "containerPort": port}]
    return described | probes(part, workload) | {"env": variables(part, workload)}


def called_port(part: Part, workload: Workload) -> int | None:
    """The port on which other parts call this one, or None."""
    if workload.callers is None:
        return None
    return workload.log_port or next(iter(part.ports.values()))


def probes(part: Part, workload: Workload) -> Described:
    """The startup, readiness and liveness probes; only a failed liveness probe restarts a part."""
    serving: Described | None = None
    match part.name:
        case "connect":
            serving = alive = {"httpGet": {"path": "/health", "port": "main"}}
        case "airflow-api-server":
            serving = alive = {"httpGet": {"path": "/api/v2/monitor/health", "port": "main"}}
        case "spark-connect":
            alive = executed(*FOREGROUND, "alive", part.name)
            serving = {"tcpSocket": {"port": "main"}}
        case _ if workload.job_type:
            # A recreated pod has the same name, so the heartbeat may be its predecessor's.
            several = ("--local", "--limit", "0", "--allow-multiple")
            alive = executed(AIRFLOW, "jobs", "check", "--job-type", workload.job_type, *several)
        case _:
            alive = executed(*FOREGROUND, "alive", part.name)
            serving = executed(*FOREGROUND, "probe", part.name)
    starts = {"periodSeconds": START_SECONDS, "timeoutSeconds": LOOK_TIMEOUT}
    seldom = {"periodSeconds": LOOK_SECONDS, "timeoutSeconds": LOOK_TIMEOUT}
    tries = round(part.ready_seconds / START_SECONDS)
    described = {
        "startupProbe": alive | starts | {"failureThreshold": tries},
        "livenessProbe": alive | seldom | {"failureThreshold": PATIENCE},
    }
    if serving is not None:
        described["readinessProbe"] = serving | (seldom if "exec" in serving else starts)
    return described


def executed(*command: str) -> Described:
    """A probe that runs a command in the container."""
    return {"exec": {"command": list(command)}}


def step_container(step: str, *, image: str) -> Described:
    """A container for a step that ends: the same entry point, with the step's name."""
    return {"name": step, "image": image, "args": ["run", step]}


def waits_for_migration(image: str) -> Described:
    """Waits until the scheduler's pod has migrated Airflow's database to this release."""
    seconds = str(MIGRATION_SECONDS)
    arguments = ["db", "check-migrations", "--migration-wait-timeout", seconds]
    return {"name": "migrated", "image": image, "command": [AIRFLOW], "args": arguments}


def variables(part: Part, workload: Workload) -> list[Described]:
    """Variables of the part's own container."""
    if part.name != "connect":
        own = [{"name": name, "value": value} for name, value in workload.variables.items()]
        return [*own, *secret_variables(workload.secrets)]
    # Workers forward requests to the leader, at the address that it advertises.
    port = next(iter(part.ports.values()))
    replication = ", ".join(
        f'"{one}.storage.replication.factor": "-1"' for one in ("config", "offset", "status")
    )
    conf = (
        f'{{"listeners": "http://0.0.0.0:{port}", "rest.advertised.host.name": "$(POD_IP)", '
        f"{replication}}}"
    )
    return [
        {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "TIDEMARK_KAFKA_CONNECT__CONF", "value": conf},
    ]


def secret_variables(names: Sequence[str]) -> list[Described]:
    """Settings that hold passwords, by reference."""
    found = []
    for name in names:
        reference: Described = {"name": SECRET, "key": SECRET_KEYS[name]}
        if name in OPTIONAL:
            reference["optional"] = True
        found.append({"name": name, "valueFrom": {"secretKeyRef": reference}})
    return found


def common(workload: Workload) -> Described:
    """Keys that all containers of a workload share."""
    sources: list[Described] = [{"configMapRef": {"name": SETTINGS}}]
    if workload.files is not None and workload.files[0] == AIRFLOW_FILES and not workload.paths:
        sources.append({"configMapRef": {"name": AIRFLOW_SETTINGS}})
    if workload.object_store:
        sources.append({"secretRef": {"name": workload.object_store, "optional": True}})
    promised, most = workload.cpu
    memory = f"{workload.memory}Gi"
    mounts: list[Described] = [
        {"name": "state", "mountPath": str(STATE)},
        {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - a volume of the pod's own
    ]
    if workload.files is not None:
        place = str(STATE / workload.files[1])
        mounts.append({"name": "secrets", "mountPath": place, "readOnly": True})
    return {
        "imagePullPolicy": "IfNotPresent",
        "envFrom": sources,
        "resources": {
            "requests": {"cpu": promised, "memory": memory},
            "limits": {"cpu": most, "memory": memory},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": mounts,
    }


def volumes(workload: Workload) -> list[Described]:
    """Writable volumes of its containers, and the files of its secret."""
    found: list[Described] = [{"name": "tmp", "emptyDir": {"sizeLimit": "2Gi"}}]
    if not workload.disk:
        found.append({"name": "state", "emptyDir": {"sizeLimit": "20Gi"}})
    if workload.files is not None:
        secret: Described = {"secretName": workload.files[0], "defaultMode": 0o440}
        if workload.paths:
            items = [{"key": key, "path": path} for key, path in workload.paths.items()]
            secret["items"] = items
        if workload.optional_files:
            secret["optional"] = True
        found.append({"name": "secrets", "secret": secret})
    return found


def apart(name: str) -> Described:
    """Anti-affinity: replicas run on different machines if possible."""
    term = {"labelSelector": {"matchLabels": labels(name)}, "topologyKey": "kubernetes.io/hostname"}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
