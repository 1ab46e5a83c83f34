"""What Kubernetes asks of a part beside its command: how many, how large, which secrets, who calls.

Each part is one workload of the same name. One that must never run twice is a StatefulSet: a
Deployment makes a second pod while the first one of a lost node may still write.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# Secrets that the deployer makes. The first one's keys become settings; the files of the next four
# lie where the local stack has its own; the last has what the object store's clients look for in
# the environment, and is not needed where a pod's account is enough.
SECRET = "tidemark"  # noqa: S105 - a name
AIRFLOW_FILES = "tidemark-airflow"
CONNECT_FILES = "tidemark-connect"
SPARK_FILES = "tidemark-spark-connect"
ENDPOINT_FILES = "tidemark-endpoint"
OBJECT_STORE = "tidemark-object-store"
# The same for the SQL endpoint, whose key needs to read and nothing more.
ENDPOINT_STORE = "tidemark-endpoint-object-store"
# The accounts of the images: of the endpoint, and of everything else.
USER, ENDPOINT_USER = 10001, 10002

CONTROL_DB = "TIDEMARK_CONTROL_DB"
SOURCE_DATABASE = "TIDEMARK_SOURCE_DATABASE"
SINKS = ("TIDEMARK_SINKS__POSTGRES", "TIDEMARK_SINKS__REDIS", "TIDEMARK_SINKS__CASSANDRA")
# Settings that hold passwords, by the secret's key; a project without sinks has no use for theirs.
SECRET_KEYS = {
    CONTROL_DB: "control-db",
    SOURCE_DATABASE: "source-database",
    **dict(zip(SINKS, ("sinks-postgres", "sinks-redis", "sinks-cassandra"), strict=True)),
}
OPTIONAL = frozenset(SINKS)
ANYBODY: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A part on Kubernetes.

    Attributes:
        cpu: cores that it is promised, and those that it may take; a JVM on ``local[*]`` runs as
            many tasks as it may take cores.
        memory: GiB, promised and at most.
        replicas: several where each can do the work of the others.
        single: never two at once, also while one is replaced or its node is lost.
        disk: GiB that outlive the pod; 0 where its files are of use to its process only.
        secrets: settings that come from the secret.
        files: a secret whose files it reads, and the directory below the state directory.
        paths: where in that directory each of its keys lies; empty for all of them at its top.
        variables: settings of its own.
        object_store: the secret by which it reads or writes the lake; "" for none.
        user: the account that it runs as.
        callers: the workloads that may call it; None for none, ``ANYBODY`` for all.
        log_port: where it serves the logs of tasks, which callers read instead of its own port.
        job_type: what Airflow calls its heartbeat.
    """

    cpu: tuple[str, str]
    memory: int
    replicas: int = 1
    single: bool = False
    disk: int = 0
    secrets: tuple[str, ...] = ()
    files: tuple[str, str] | None = None
    paths: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    object_store: str = ""
    user: int = USER
    callers: tuple[str, ...] | None = None
    log_port: int = 0
    job_type: str = ""


_OF_AIRFLOW = (AIRFLOW_FILES, "secrets")
WORKLOADS = {
    "streams": Workload(
        cpu=("1", "2"),
        memory=4,
        single=True,
        secrets=(CONTROL_DB, *SINKS),
        object_store=OBJECT_STORE,
    ),
    "spark-connect": Workload(
        cpu=("1", "2"),
        memory=5,
        files=(SPARK_FILES, "secrets"),
        object_store=OBJECT_STORE,
        callers=("airflow-scheduler",),
    ),
    "endpoint": Workload(
        cpu=("1", "2"),
        memory=2,
        secrets=(CONTROL_DB,),
        files=(ENDPOINT_FILES, "secrets"),
        paths={"endpoint": "endpoint", "ca.pem": "tls/ca.pem", "endpoint.pem": "tls/endpoint.pem"},
        # Security here is the endpoint's: it is a client of nothing that the setting concerns.
        variables={"TIDEMARK_ENDPOINT__HOST": "0.0.0.0", "TIDEMARK_SECURITY__ENABLED": "true"},  # noqa: S104
        object_store=ENDPOINT_STORE,
        user=ENDPOINT_USER,
        callers=ANYBODY,
    ),
    "connect": Workload(
        cpu=("250m", "1"),
        memory=1,
        replicas=2,
        files=(CONNECT_FILES, "secrets/connect"),
        callers=("connect", "connector"),
    ),
    "airflow-api-server": Workload(
        cpu=("250m", "1"), memory=2, replicas=2, files=_OF_AIRFLOW, callers=ANYBODY
    ),
    # Its workers are processes of the same pod, and so are the tasks that they run.
    "airflow-scheduler": Workload(
        cpu=("1", "2"),
        memory=4,
        single=True,
        disk=10,
        secrets=(CONTROL_DB, SOURCE_DATABASE, *SINKS),
        files=_OF_AIRFLOW,
        object_store=OBJECT_STORE,
        callers=("airflow-api-server",),
        log_port=8793,
        job_type="SchedulerJob",
    ),
    "airflow-dag-processor": Workload(
        cpu=("250m", "1"), memory=1, files=_OF_AIRFLOW, job_type="DagProcessorJob"
    ),
    "airflow-triggerer": Workload(
        cpu=("100m", "1"),
        memory=1,
        single=True,
        files=_OF_AIRFLOW,
        callers=("airflow-api-server",),
        log_port=8794,
        job_type="TriggererJob",
    ),
}
# The one task that nothing waits for: streams run whether or not the connector is registered.
CONNECTOR = Workload(cpu=("100m", "1"), memory=1, secrets=(SOURCE_DATABASE,))
