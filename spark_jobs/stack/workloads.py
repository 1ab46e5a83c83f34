"""What Kubernetes needs of a part beyond its command: replicas, resources, secrets, callers.

Each part is one workload of the same name. A part that must never run twice is a StatefulSet: a
Deployment creates a second pod while the first one, on a lost node, may still write.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_jobs.access.secrets import AIRFLOW_ANNOUNCER

# Secrets that the deployer creates. The keys of the first become settings; the files of the next
# four are mounted where the local stack has its own; the last contains the environment variables
# of the object store's clients, and is not needed if a pod's account is enough.
SECRET = "tidemark"  # noqa: S105 - a name
AIRFLOW_FILES = "tidemark-airflow"
CONNECT_FILES = "tidemark-connect"
SPARK_FILES = "tidemark-spark-connect"
ENDPOINT_FILES = "tidemark-endpoint"
OBJECT_STORE = "tidemark-object-store"
# The same for the SQL endpoint, whose key needs read access only.
ENDPOINT_STORE = "tidemark-endpoint-object-store"
# Accounts in the images: of the endpoint, and of all other parts.
USER, ENDPOINT_USER = 10001, 10002

CONTROL_DB = "TIDEMARK_CONTROL_DB"
SOURCE_DATABASE = "TIDEMARK_SOURCE_DATABASE"
SINKS = ("TIDEMARK_SINKS__POSTGRES", "TIDEMARK_SINKS__REDIS", "TIDEMARK_SINKS__CASSANDRA")
# Settings with passwords, by the secret's key; a project without sinks does not need theirs.
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
        cpu: requested cores, and the limit; a JVM on ``local[*]`` runs as many tasks as the
            limit allows cores.
        memory: requested GiB, and the limit.
        replicas: more than one if any replica can do the work.
        single: never two at once, even during a replacement or after the loss of a node.
        disk: GiB that outlive the pod; 0 if only its process needs the files.
        secrets: settings that come from the secret.
        files: a secret with files, and their directory below the state directory.
        paths: the path in that directory for each key; empty: all at its top.
        optional_files: whether the pod starts without these files.
        variables: additional settings.
        object_store: the secret for access to the lake; "" for none.
        user: the account that it runs as.
        callers: the workloads that may call it; None for none, ``ANYBODY`` for all.
        log_port: the port with task logs, which callers read instead of its main port.
        job_type: the name of its heartbeat in Airflow.
    """

    cpu: tuple[str, str]
    memory: int
    replicas: int = 1
    single: bool = False
    disk: int = 0
    secrets: tuple[str, ...] = ()
    files: tuple[str, str] | None = None
    paths: Mapping[str, str] = field(default_factory=dict)
    optional_files: bool = False
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
        # Of Airflow's files they get one, the password with which they emit events.
        files=_OF_AIRFLOW,
        paths={AIRFLOW_ANNOUNCER: AIRFLOW_ANNOUNCER},
        optional_files=True,
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
        # ``security`` concerns only the endpoint itself here: it is no client of a secured service.
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
        # The scheduler's tasks report a connector that failed, and the streams restart it.
        callers=("connect", "connector", "airflow-scheduler", "streams"),
    ),
    "airflow-api-server": Workload(
        cpu=("250m", "1"), memory=2, replicas=2, files=_OF_AIRFLOW, callers=ANYBODY
    ),
    # Its workers, and the tasks that they run, are processes of the same pod.
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
    # The control database knows which version of the project it shows.
    "airflow-dag-processor": Workload(
        cpu=("250m", "1"),
        memory=1,
        secrets=(CONTROL_DB,),
        files=_OF_AIRFLOW,
        job_type="DagProcessorJob",
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
# No other step waits for this task: streams run without a registered connector too.
# The control database knows what was applied since it was started.
CONNECTOR = Workload(cpu=("100m", "1"), memory=1, secrets=(CONTROL_DB, SOURCE_DATABASE))
