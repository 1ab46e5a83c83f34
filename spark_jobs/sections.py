"""The sections of the settings: each key's default and unit; see ``settings``."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from spark_jobs.java_options import LONG_RUN
from spark_jobs.names import Layer
from spark_jobs.setting_names import with_old_name


class Ports(BaseModel):
    """Loopback ports of the local stack; each can be changed when it is taken."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    postgres: int = 25432
    kafka: int = 29092
    kafka_controller: int = 29093
    connect: int = 28083
    spark_connect: int = 25002
    spark_ui: int = 24040
    streams_ui: int = 24041
    airflow: int = 28080
    redis: int = 26379
    endpoint: int = 20000
    # For Cassandra, if it is started; the second port is for traffic between its nodes.
    cassandra: int = 29042
    cassandra_storage: int = 27000
    object_store: int = 29000
    # For additional parts of a kind and for the Spark cluster, if ``local`` enables them.
    kafka_2: int = 29094
    kafka_controller_2: int = 29095
    kafka_3: int = 29096
    kafka_controller_3: int = 29097
    connect_2: int = 28084
    spark_master: int = 27077
    spark_master_ui: int = 24042
    spark_worker: int = 27078
    spark_worker_ui: int = 24043
    spark_worker_2: int = 27079
    spark_worker_ui_2: int = 24044

    def of(self, kind: str, number: int = 1) -> tuple[str, int]:
        """The setting and the port of the first, second, ... part of a kind.

        >>> Ports().of("kafka"), Ports().of("kafka", 3)
        (('ports.kafka', 29092), ('ports.kafka_3', 29096))
        """
        name = kind if number == 1 else f"{kind}_{number}"
        return f"ports.{name}", int(getattr(self, name))


class Engine(StrEnum):
    """What does the work of a layer."""

    SPARK = "spark"
    # Small work in the process itself, by a library that is known to give the same result as Spark.
    AUTO = "auto"


class SparkSettings(BaseModel):
    """Where Spark runs and how it is tuned; the defaults suit two cores."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # A Spark Connect URL ("sc://host:port"). Empty: the local stack's server if it runs, otherwise
    # a session in this process on ``master``.
    remote: str = ""
    # A master URL. Empty: the local stack's cluster if ``local.spark_workers`` is set, otherwise
    # "local[*]".
    master: str = ""
    driver_memory: str = "2g"
    connect_memory: str = "3g"
    # For drivers. The optimizing compiler halves the CPU of a stream under load, but with Java's
    # own thresholds it costs more than it saves in the first minutes on two cores. Ten times these
    # thresholds, it compiles only what many rows pass. ``SHORT_RUN`` does without it.
    java_options: str = LONG_RUN
    # For executors, which run few batches and one task at a time.
    executor_java_options: str = "-XX:+UseSerialGC"
    shuffle_partitions: int = Field(default=2, ge=1)
    # Delta reads a table's log with this many tasks; its own default of 50 suits huge logs only.
    snapshot_partitions: int = Field(default=1, ge=1)
    conf: dict[str, str] = Field(default_factory=dict)


class StreamSettings(BaseModel):
    """Pace of the streaming application."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    bronze_trigger_seconds: float = Field(default=2, gt=0)
    # Interval at which silver checks for commits of bronze. Bronze's trigger limits the number of
    # batches; a check without a new commit takes about a millisecond of CPU.
    silver_trigger_seconds: float = Field(default=0.5, gt=0)
    # Minimum time between the starts of two passes over the continuous gold views. A view whose
    # inputs have not changed for longer is refreshed at once.
    gold_trigger_seconds: float = Field(default=5, gt=0)
    # How many continuous views that do not read each other are refreshed at the same time.
    gold_parallel: int = Field(default=2, ge=1)
    # Back-pressure: maximum number of records in one batch of a source.
    max_offsets_per_trigger: int = Field(default=1_000_000, ge=1)
    # Maximum number of tasks for one large batch of a source; each task writes a file. A full batch
    # uses all of them even if its topic has one partition.
    bronze_tasks: int = Field(default=2, ge=1)
    # What appends, judges and merges batches. "spark": Spark only; "auto": small batches are
    # handled in the application's own process, by Arrow and delta-rs.
    engine: Engine = Engine.AUTO
    # A record above this size is quarantined, not parsed.
    max_record_bytes: int = Field(default=1_000_000, ge=1)


class KafkaConnectSettings(BaseModel):
    """Address and topics of an external Kafka Connect."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # The REST address where the connector is registered. Empty: the local stack's worker.
    url: str = ""
    # Whether the streams restart a failed connector at `url`; the local stack's they always do.
    restart_failed: bool = False
    # The topic in which the workers store their connectors' offsets.
    offsets_topic: str = "_connect_offsets"
    # Additional worker configuration; it overrides that of the local stack's worker.
    conf: dict[str, str] = Field(default_factory=dict)


class SinkSettings(BaseModel):
    """Addresses and interval of sinks; the broker is ``kafka_bootstrap_servers``.

    Addresses contain passwords: set them in the environment.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    # A libpq URL. Empty: the local stack's serving database.
    postgres: str = ""
    # A redis:// or rediss:// URL. Empty: the local stack's server.
    redis: str = ""
    # cassandra://user:password@host:port,host, or cassandras:// for TLS. Empty: the local stack's
    # server, if it was started.
    cassandra: str = Field(default="", pattern=r"^(cassandras?://\S+)?$")
    trigger_seconds: float = Field(default=2, gt=0)


class GoldSettings(BaseModel):
    """How gold views are refreshed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # Replaces ``every`` of all views (for instance "1 minute" in the demo). Empty: no override.
    every_override: str = ""
    # Views that are scheduled from the start; the setting above applies to these only. The DAGs of
    # all other views are created paused, because a small machine cannot start all of them at once.
    # Empty: all views.
    scheduled_at_first: tuple[str, ...] = ()
    # Interval at which a continuous view that reads the clock is refreshed without input changes.
    clock_seconds: float = Field(default=60, gt=0)
    # Duration of a lease. A live holder renews it; after a dead one others wait this long.
    lease_seconds: float = Field(default=60, gt=0)
    # How long a staged result that was not published is kept for inspection.
    staging_days: float = Field(default=7, gt=0)
    # How long the input versions of a tick are kept: a run that is retried later reads the newest
    # versions. The ledger keeps attempts of continuous refreshes for the same time.
    tick_days: float = Field(default=7, gt=0)
    # Two FLOAT or DOUBLE values of a table and of its SQL count as equal up to this relative
    # difference, because such sums depend on the order of rows; `tidemark verify` reports it. 0:
    # only identical values are equal.
    float_tolerance: float = Field(default=1e-9, ge=0, lt=1)
    # How long a scheduled refresh waits for a commit position that covers the current content of
    # its tables; then it reads the newest position that they have in common.
    transaction_wait_seconds: float = Field(default=10, ge=0)
    # What computes refreshes. "spark": Spark only; "auto": DuckDB, in the process of the refresh,
    # where it is known to give the same result.
    engine: Engine = Engine.SPARK
    # Memory limit of DuckDB for one refresh; it spills to disk beyond that.
    engine_memory: str = Field(default="2 GiB", pattern=r"^\d+ ?(MiB|GiB)$")


class Approval(StrEnum):
    """Who may approve a request."""

    ANYBODY = "anybody"
    # Somebody other than the requester; the command line then refuses what needs an approval in the
    # form.
    SECOND_PERSON = "second_person"


class ReplaySettings(BaseModel):
    """When replays, rollbacks and releases need an approval."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # A replay that reads more input rows than this needs an approval.
    approve_above_rows: int = Field(default=1_000_000, ge=0)
    # It is rejected after this time without an answer.
    approval_hours: float = Field(default=2, gt=0)
    # "second_person": nobody can approve their own request.
    approval: Approval = Approval.ANYBODY


class GraphSettings(BaseModel):
    """Maximum size of the graph of gold views; `tidemark validate` refuses more."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # Levels of views over views; a view that reads no gold view is on level one.
    most_tiers: int = Field(default=10, ge=1)
    # Gold views that read one table directly.
    most_readers: int = Field(default=100, ge=1)


class BreakerSettings(BaseModel):
    """Which refreshes wait for a person: those above both limits of a pair."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # Rows that a refresh reads: the changed rows, or all rows for a full refresh.
    rows: int = Field(default=10_000_000, ge=0)
    # Multiple of the median of rows that the last refreshes of the view read.
    times: float = Field(default=10, ge=1)
    # Quarantined records of a silver table that arrived since the view was published.
    quarantined_rows: int = Field(default=100, ge=0)
    # Their share of all records that arrived since then.
    quarantined_share: float = Field(default=0.05, ge=0, le=1)


class MaintenanceSettings(BaseModel):
    """Compaction of small files, and retention in the lake and the control database."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # A table's writer compacts its small files when there are this many; in a partitioned table,
    # those of the written partition. Tables written without Spark are compacted at 32 files at the
    # latest, because small changes are written without Spark only up to that number.
    small_files: int = Field(default=50, ge=2)
    # Files below this size are small.
    small_file_mib: int = Field(default=32, ge=1)
    # `tidemark maintain` removes files that no version of the last days needs. Files that a stream,
    # a sink, a view or a run has not read yet are kept longer.
    retention_days: float = Field(default=7, gt=0)
    # Of a table that commits more often in that time, only so many versions stay readable. Everyone
    # who opens or writes a table lists its log, and a stream makes thousands of commits a day.
    log_commits: int = Field(default=10_000, ge=10)
    # Older attempts and verifications are deleted from the control database, and older counts of
    # silver batches are aggregated; the newest always stay.
    ledger_days: float = Field(default=90, gt=0)
    # Older runs leave Airflow's database, with their log files. 0: all are kept.
    airflow_days: float = Field(default=0, ge=0)

    @property
    def small_file_bytes(self) -> int:
        """The size below which a file is small."""
        return self.small_file_mib * 2**20


class ExecutorMode(StrEnum):
    """How Airflow's tasks reach Spark."""

    # Each step is a task that talks to a warm Spark Connect server.
    CONNECT = "connect"
    # One Spark application per refresh, for clusters without a Connect server.
    SUBMIT = "submit"


class Pools(BaseModel):
    """The number of slots of each Airflow pool; the stack creates these pools.

    An existing pool keeps its size in Airflow, where it can be changed at any time.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    live: int = Field(default=4, ge=0)
    replay: int = Field(default=1, ge=0)
    maintenance: int = Field(default=1, ge=0)


class AirflowSettings(BaseModel):
    """How the gold DAGs are built."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    executor_mode: ExecutorMode = ExecutorMode.CONNECT
    # The Airflow connection of the cluster; only for the mode submit.
    spark_connection: str = "spark_default"
    pools: Pools = Pools()
    # How often the local stack's Airflow reads the DAG files when no file and no deployment has
    # changed. That takes 3 to 4 CPU-seconds for every hundred views.
    parse_seconds: int = Field(default=120, gt=0)
    # The Airflow that receives asset events for publications of the streams and the command line.
    # None: the local stack's Airflow.
    url: str | None = None
    # Stagger the starts of views within their periods, and let a backfill recompute whole days.
    # This needs the plugin in spark_jobs/orchestration/plugins, which the local stack sets as
    # plugins_folder.
    stagger: bool = True

    @model_validator(mode="before")
    @classmethod
    def _read_old_names(cls, values: Any) -> Any:
        return with_old_name(values, old="lanes", new="pools", section="airflow.")


class NotifierSettings(BaseModel):
    """An Airflow notifier and its arguments."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # The dotted path of a subclass of airflow.sdk.BaseNotifier.
    notifier: str
    # Templates may use `alert`. Name Airflow connections here, never a password.
    arguments: dict[str, Any] = Field(default_factory=dict)


class AlertSettings(BaseModel):
    """Who gets alerts when an Airflow task failed and is not retried."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # The default writes a JSON line to alerts.jsonl in the state directory.
    notifiers: tuple[NotifierSettings, ...] = (
        NotifierSettings(notifier="spark_jobs.orchestration.alerts.FileNotifier"),
    )
    # Location of the runbooks in alerts: a folder or a URL.
    runbooks: str = "docs/runbooks"
    # An open incident is reported again after this time.
    repeat_hours: float = Field(default=24, gt=0)


class MetricSettings(BaseModel):
    """Where metrics of refreshes go."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # The HTTP address of an OTLP receiver, for instance http://127.0.0.1:4318. Empty: none. Headers
    # are read from OTEL_EXPORTER_OTLP_HEADERS.
    otlp: str = Field(default="", pattern=r"^(https?://\S+)?$")


class LineageSettings(BaseModel):
    """Where OpenLineage events go."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # A transport configuration of the OpenLineage client, for instance {type: http, url:
    # "http://127.0.0.1:5000"}. Empty: none. Set a transport with a key in the environment.
    transport: dict[str, Any] = Field(default_factory=dict)


class SecuritySettings(BaseModel):
    """Authentication of clients and servers, and access to files; see docs/security.md."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # SASL_SSL for Kafka with permissions for each principal, TLS for PostgreSQL and the SQL
    # endpoint, a token for Spark Connect. The local stack generates the secrets; for external
    # servers put the same secrets into <state_dir>/secrets.
    enabled: bool = False
    # The layers whose files every account of the machine may read. Other layers and rejected
    # records are readable by the account that runs the pipeline and its group only.
    readable: tuple[Layer, ...] = (Layer.GOLD,)


class ControlDatabase(StrEnum):
    """Where the local stack keeps the control database."""

    SQLITE = "sqlite"
    POSTGRES = "postgres"


class LocalSettings(BaseModel):
    """The parts of the local stack, and the resources that it needs to start."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # Kafka nodes, each broker and controller. Every topic has a replica on each; with three nodes,
    # two must have a record before it is acknowledged.
    kafka_brokers: int = Field(default=1, ge=1, le=3)
    connect_workers: int = Field(default=1, ge=1, le=2)
    # Workers of a Spark standalone cluster. 0: no cluster, each Spark runs in its own process.
    spark_workers: int = Field(default=0, ge=0, le=2)
    # Cores per worker. Two applications share the cluster, the streams and the Connect server, so
    # with two cores each gets one core on each worker.
    spark_worker_cores: int = Field(default=2, ge=1)
    spark_worker_memory: str = "2g"
    # Start an S3-compatible object store; it holds the lake if ``lake_root`` is empty. `make
    # setup-s3` downloads it.
    object_store: bool = False
    # Used if ``control_db`` is empty.
    control: ControlDatabase = ControlDatabase.SQLITE
    # The stack starts with no less free memory and disk. It takes more when all of it is at work;
    # README.md says how much.
    free_memory_gib: float = Field(default=4, ge=0)
    free_disk_gib: float = Field(default=2, ge=0)
