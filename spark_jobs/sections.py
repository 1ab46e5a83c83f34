"""The sections of the settings: each key's default and unit; see ``settings``."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

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
    # Cassandra listens where it is started; the second port is for its nodes among themselves.
    cassandra: int = 29042
    cassandra_storage: int = 27000
    object_store: int = 29000
    # Of further parts of a kind, and of Spark's own cluster: only where ``local`` asks for them.
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


class SparkSettings(BaseModel):
    """Where Spark runs and how it is tuned; the defaults suit two cores."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # A Spark Connect URL ("sc://host:port"). Empty: the local stack's server while that is
    # announced, otherwise a session in this process on ``master``.
    remote: str = ""
    # A master's URL. Empty: the local stack's own cluster where ``local.spark_workers`` asks for
    # one, otherwise "local[*]".
    master: str = ""
    driver_memory: str = "2g"
    connect_memory: str = "3g"
    # For drivers. On two cores the optimizing compiler first costs more than it gives back: without
    # it the batches after a start take 40 % less CPU. That says nothing about a driver that has run
    # for hours. Without it the JVM also reserves a code cache that the plans of two dozen views
    # fill. Set it to "" where Spark has cores to spare.
    java_options: str = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC"
    # For executors, which have few batches to warm up in and one task to run at a time.
    executor_java_options: str = "-XX:+UseSerialGC"
    shuffle_partitions: int = Field(default=2, ge=1)
    # Delta reads a table's log with this many tasks; its own default of 50 suits huge logs only.
    snapshot_partitions: int = Field(default=1, ge=1)
    conf: dict[str, str] = Field(default_factory=dict)


class EndpointSettings(BaseModel):
    """Where the SQL endpoint listens, and what its clients may take."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # Another address than loopback's asks for ``security.enabled``: a password would be sent as
    # it is.
    host: str = "127.0.0.1"
    # The account of the machine whose rights queries have: what ``security.readable`` names is all
    # of the state directory and the lake that it reads. The stack must be started by root, or with
    # the right to change accounts. Empty: the account of the stack.
    account: str = Field(default="", pattern=r"^([a-z_][a-z0-9_-]*)?$")
    # The heap of the server, which also runs the queries.
    memory: str = "1g"
    # A query is stopped when Spark has worked so long on it.
    query_seconds: int = Field(default=600, ge=1)
    # How many clients may be connected at once; one more waits.
    connections: int = Field(default=50, ge=2)


class StreamSettings(BaseModel):
    """Pace of the streaming application."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    bronze_trigger_seconds: float = Field(default=5, gt=0)
    # How soon silver sees what bronze committed. Bronze's trigger bounds the number of its batches;
    # a look that finds nothing takes about a millisecond of CPU.
    silver_trigger_seconds: float = Field(default=1, gt=0)
    # The shortest time from one pass over the continuous gold views to the next. A view whose
    # inputs were quiet for longer is refreshed at once.
    gold_trigger_seconds: float = Field(default=5, gt=0)
    # Back-pressure: no batch of one source holds more records than this.
    max_offsets_per_trigger: int = Field(default=1_000_000, ge=1)
    # How many tasks take in one batch of one source that is large, at most; each makes a file. A
    # full batch has as many even where its topic has one partition.
    bronze_tasks: int = Field(default=2, ge=1)
    # A record above this size is quarantined, not parsed.
    max_record_bytes: int = Field(default=1_000_000, ge=1)


class KafkaConnectSettings(BaseModel):
    """Where Kafka Connect runs that is not the local stack's."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # The REST address at which the connector is registered. Empty: the local stack's worker.
    url: str = ""
    # The topic in which the workers store their connectors' offsets.
    offsets_topic: str = "_connect_offsets"
    # More of a worker's configuration; it wins over what the local stack's worker has.
    conf: dict[str, str] = Field(default_factory=dict)


class SinkSettings(BaseModel):
    """Where sinks deliver to, and how often they look; the broker is ``kafka_bootstrap_servers``.

    Addresses hold passwords: set them in the environment.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    # A libpq URL. Empty: the local stack's serving database.
    postgres: str = ""
    # A redis:// or rediss:// URL. Empty: the local stack's server.
    redis: str = ""
    # cassandra://user:password@host:port,host, or cassandras:// for TLS. Empty: the local stack's
    # server, where it was started.
    cassandra: str = Field(default="", pattern=r"^(cassandras?://\S+)?$")
    trigger_seconds: float = Field(default=2, gt=0)


class Engine(StrEnum):
    """What computes a refresh."""

    # DuckDB, in the process of the refresh, wherever it is known to give what Spark would.
    AUTO = "auto"
    SPARK = "spark"


class GoldSettings(BaseModel):
    """How gold views are refreshed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # Replaces every view's own ``every`` (for instance "1 minute" in the demo). Empty: not at all.
    every_override: str = ""
    # Views that are refreshed on schedule from the start, and the only ones that the setting above
    # is for. The DAGs of all others are made paused, as a machine may not have the cores for all
    # of them at once. Empty: all views.
    scheduled_at_first: tuple[str, ...] = ()
    # A continuous view that reads the clock is refreshed that often where no input moves.
    clock_seconds: float = Field(default=60, gt=0)
    # A live holder renews its lease; so long does a dead one keep others waiting.
    lease_seconds: float = Field(default=60, gt=0)
    # How long a staged result that was not published is kept, for somebody to look at.
    staging_days: float = Field(default=7, gt=0)
    # How long the input versions of a tick are kept: a run that is tried again later than this
    # reads the newest versions. The ledger keeps the attempts of continuous refreshes as long.
    tick_days: float = Field(default=7, gt=0)
    # Two FLOAT or DOUBLE values of a table and of its SQL count as equal up to this relative
    # difference, because such sums depend on the order of rows; `tidemark verify` says so. 0: only
    # where they are the same.
    float_tolerance: float = Field(default=1e-9, ge=0, lt=1)
    # A scheduled refresh waits so long for versions that show whole transactions and all that its
    # tables of one database had when it began; then it reads the newest that do.
    transaction_wait_seconds: float = Field(default=10, ge=0)
    # What computes refreshes. "spark": Spark alone; "auto": DuckDB where both are known to agree.
    engine: Engine = Engine.AUTO
    # How much one refresh may hold in memory while DuckDB computes it; more is put on the disk.
    engine_memory: str = Field(default="2 GiB", pattern=r"^\d+ ?(MiB|GiB)$")


class Approval(StrEnum):
    """Who may approve what somebody asks for."""

    ANYBODY = "anybody"
    # Somebody else than who asked; the command line then refuses what its form asks a person for.
    SECOND_PERSON = "second_person"


class ReplaySettings(BaseModel):
    """What replays, rollbacks and releases ask a person for."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # A replay that reads more rows of its inputs than this waits for somebody's approval.
    approve_above_rows: int = Field(default=1_000_000, ge=0)
    # So long it waits; then it is rejected.
    approval_hours: float = Field(default=2, gt=0)
    # "second_person": nobody approves what they asked for themselves.
    approval: Approval = Approval.ANYBODY


class GraphSettings(BaseModel):
    """How large the graph of gold views may grow; `tidemark validate` refuses more."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # Views over views, counted from the first that reads the layers below only.
    most_tiers: int = Field(default=10, ge=1)
    # Gold views that read one table themselves.
    most_readers: int = Field(default=100, ge=1)


class BreakerSettings(BaseModel):
    """Which refreshes wait until a person lets them pass: those above both limits of a pair."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # Rows that a refresh reads: those that changed, or all where everything is computed again.
    rows: int = Field(default=10_000_000, ge=0)
    # So many times the rows that the last refreshes of the view read, in the median.
    times: float = Field(default=10, ge=1)
    # Records that came for a silver table since the view was published and are in quarantine.
    quarantined_rows: int = Field(default=100, ge=0)
    # Their share of all that came.
    quarantined_share: float = Field(default=0.05, ge=0, le=1)


class MaintenanceSettings(BaseModel):
    """When small files are joined, and how long the lake and the control database keep the past."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # A table's writer joins its small files where there are so many; of a partitioned table, in
    # the partition that was written. Tables that were written without Spark are joined at 32 at
    # the latest: looking into more files than that, a change of few rows is not.
    small_files: int = Field(default=50, ge=2)
    # A file below this size is a small one.
    small_file_mib: int = Field(default=32, ge=1)
    # Files that no version of the last days needs are removed by `tidemark maintain`. What a
    # stream, a sink, a view or a run has yet to read is kept longer.
    retention_days: float = Field(default=7, gt=0)
    # Attempts and verifications that are older leave the control database, and the counts of
    # silver batches that are older are summed up; the newest always stay.
    ledger_days: float = Field(default=90, gt=0)

    @property
    def small_file_bytes(self) -> int:
        """The size below which a file is a small one."""
        return self.small_file_mib * 2**20


class ExecutorMode(StrEnum):
    """How Airflow's tasks reach Spark."""

    # Each step is a task that talks to a warm Spark Connect server.
    CONNECT = "connect"
    # One Spark application per refresh, for clusters without a Connect server.
    SUBMIT = "submit"


class Pools(BaseModel):
    """How many tasks of each of Airflow's pools run at once; the stack makes these pools.

    A pool that exists keeps the size that it has in Airflow, where it can be changed at any time.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    live: int = Field(default=4, ge=0)
    replay: int = Field(default=1, ge=0)
    maintenance: int = Field(default=1, ge=0)


class AirflowSettings(BaseModel):
    """How the gold DAGs are built."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    executor_mode: ExecutorMode = ExecutorMode.CONNECT
    # The Airflow connection that names the cluster; only where the mode is submit.
    spark_connection: str = "spark_default"
    pools: Pools = Pools()
    # Where publications of the streams and of the command line are told, as events of the views'
    # assets. None: the local stack's Airflow.
    url: str | None = None
    # Spread the starts of views within their periods, and let a backfill recompute whole days. It
    # needs the plugin in spark_jobs/orchestration/plugins, which the local stack names as
    # plugins_folder.
    stagger: bool = True

    @model_validator(mode="before")
    @classmethod
    def _read_old_names(cls, values: Any) -> Any:
        return with_old_name(values, old="lanes", new="pools", section="airflow.")


class NotifierSettings(BaseModel):
    """A notifier of Airflow's, and what it is made with."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # The dotted path of a class that follows airflow.sdk.BaseNotifier.
    notifier: str
    # Its templates may use `alert`. Name Airflow's connections here, never a password.
    arguments: dict[str, Any] = Field(default_factory=dict)


class AlertSettings(BaseModel):
    """Who hears that a task of Airflow's failed for good."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # The one here writes a JSON line to alerts.jsonl in the state directory.
    notifiers: tuple[NotifierSettings, ...] = (
        NotifierSettings(notifier="spark_jobs.orchestration.alerts.FileNotifier"),
    )
    # Where an alert's reader finds the runbooks: a folder or a URL.
    runbooks: str = "docs/runbooks"
    # A fault that lasts is told again after so long.
    repeat_hours: float = Field(default=24, gt=0)


class MetricSettings(BaseModel):
    """Where metrics of refreshes go."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # The HTTP address of an OTLP receiver, for instance http://127.0.0.1:4318. Empty: nowhere.
    # What it asks for in headers is read from OTEL_EXPORTER_OTLP_HEADERS.
    otlp: str = Field(default="", pattern=r"^(https?://\S+)?$")


class LineageSettings(BaseModel):
    """Where events of OpenLineage go."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # A transport as OpenLineage's client is configured with, for instance
    # {type: http, url: "http://127.0.0.1:5000"}. Empty: nowhere. One that holds a key belongs
    # into the environment.
    transport: dict[str, Any] = Field(default_factory=dict)


class SecuritySettings(BaseModel):
    """Whether servers ask who calls, and callers who answers; see docs/security.md."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # Kafka by SASL_SSL with rights for each principal, TLS for PostgreSQL and the SQL endpoint, a
    # token for Spark Connect. The local stack generates what that needs; for servers elsewhere the
    # same secrets are put into <state_dir>/secrets.
    enabled: bool = False
    # The layers whose files every account of the machine may read. The others, and what was
    # rejected, are for the account that runs the pipeline and its group.
    readable: tuple[Layer, ...] = (Layer.GOLD,)


class ControlDatabase(StrEnum):
    """Where the local stack keeps the control database."""

    SQLITE = "sqlite"
    POSTGRES = "postgres"


class LocalSettings(BaseModel):
    """What the local stack consists of, and asks of the machine before it starts."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # Kafka's nodes, each broker and controller. Every topic has a replica on each; of three, two
    # must have a record before it is acknowledged.
    kafka_brokers: int = Field(default=1, ge=1, le=3)
    connect_workers: int = Field(default=1, ge=1, le=2)
    # Workers of a Spark standalone cluster. 0: none, each Spark computes in its own process.
    spark_workers: int = Field(default=0, ge=0, le=2)
    # What a worker gives away: two applications share the cluster, the streams and the Connect
    # server, so with two cores each can have one core on each worker.
    spark_worker_cores: int = Field(default=2, ge=1)
    spark_worker_memory: str = "2g"
    # An object store that speaks S3's protocol; the lake is in it where ``lake_root`` is empty.
    # `make setup-s3` fetches what it needs.
    object_store: bool = False
    # Used where ``control_db`` is empty.
    control: ControlDatabase = ControlDatabase.SQLITE
    free_memory_gib: float = Field(default=4, ge=0)
    free_disk_gib: float = Field(default=2, ge=0)
