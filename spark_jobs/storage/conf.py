"""The one truth of Spark's configuration: this process, the Connect server, streams, a cluster."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

from spark_jobs.settings import LOOPBACK, Settings
from spark_jobs.storage.errors import JarsMissingError, JavaMissingError
from spark_jobs.storage.guard import EXTENSION
from spark_jobs.storage.log_store import in_s3, store_conf, store_jars

LOG_CONFIGURATION = Path(__file__).with_name("log4j2.properties")
CONNECT_URL_FILE = "run/spark-connect.url"

# What a query may mean differently without; set on every session, on servers of others too.
SEMANTIC_CONF = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    # Spark's old form of a timestamp holds nanoseconds: readers other than Spark see years before
    # 1677 and after 2262 as other years, silently.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # A file that is gone must fail a read: skipping it would lose rows silently.
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    # With it, SELECT '${env:NAME}' shows the environment of the server.
    "spark.sql.variable.substitute": "false",
}

# Driver and executor are one process, so neither can lose the other. Spark would believe so after a
# machine slept or stood still for two minutes, and end what runs; what is waited for across
# such a pause is still worth having.
STANDING_STILL = {
    "spark.storage.blockManagerHeartbeatTimeoutMs": "365d",
    "spark.rpc.askTimeout": "1h",
    "spark.sql.broadcastTimeout": "3600",
}


def session_conf(settings: Settings) -> dict[str, str]:
    """The configuration of every Spark that this project starts.

    Raises:
        JarsMissingError: Delta's jars are not where the settings say.
        StoreJarsMissingError: the lake is in S3, and what reaches it is not there.
    """
    jars = all_jars(settings)
    folders = [settings.spark_jars, *([settings.s3_jars] if in_s3(settings.lake) else [])]
    conf = {
        **SEMANTIC_CONF,
        "spark.driver.memory": settings.spark.driver_memory,
        "spark.driver.extraJavaOptions": (
            f"-Dlog4j2.configurationFile={LOG_CONFIGURATION.as_uri()} -Duser.timezone=UTC "
            f"{' '.join(avro_limits(settings))} {settings.spark.java_options}"
        ).strip(),
        "spark.driver.extraClassPath": ":".join(str(folder / "*") for folder in folders),
        "spark.sql.extensions": f"io.delta.sql.DeltaSparkSessionExtension,{EXTENSION}",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(settings.state / "spark-warehouse"),
        "spark.sql.shuffle.partitions": str(settings.spark.shuffle_partitions),
        "spark.databricks.delta.snapshotPartitions": str(settings.spark.snapshot_partitions),
        # Delta keeps the logs of the last 10,000 tables, a megabyte of plans each, and every
        # refresh has a staged table of its own: they would fill the heap.
        "spark.databricks.delta.delta.log.cacheSize": "200",
        # Readers other than Spark (delta-rs, DuckDB) must be able to read every table.
        "spark.databricks.delta.properties.defaults.enableDeletionVectors": "false",
        # Of a repeated key in a JSON object the last one counts; the record is not refused.
        "spark.sql.variant.allowDuplicateKeys": "true",
        # Else every call that builds a column keeps the stack that made it, for an error's text: a
        # tenth of the CPU of a small query, and each task is sent all of them.
        "spark.sql.dataFrameQueryContext.enabled": "false",
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Spark keeps the compiled code of 100 stages; some ten views need more, and compiling again
        # takes most of the time of a small query.
        "spark.sql.codegen.cache.maxEntries": "1000",
        # The web pages know no password. Where somebody switches them on, every account here sees
        # the plans, and none can end a job.
        "spark.ui.enabled": "false",
        "spark.ui.killEnabled": "false",
        # The login of Kafka's source is no word that Spark hides of itself.
        "spark.redaction.regex": "(?i)secret|password|passwd|token|access[.]?key|jaas",
        # What the web pages keep of the past lies in the driver's heap, and a session that lasts
        # for weeks runs some hundred thousand queries.
        "spark.sql.ui.retainedExecutions": "100",
        "spark.sql.maxPlanStringLength": "20000",
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.connect.grpc.binding.port": str(settings.ports.spark_connect),
    }
    if in_s3(settings.lake):
        conf |= store_conf(settings)
    if on_this_machine(settings.spark_master):
        conf |= {
            **authentication(settings),
            "spark.driver.host": LOOPBACK,
            "spark.driver.bindAddress": LOOPBACK,
            "spark.local.dir": str(settings.state / "spark-local"),
            **(STANDING_STILL if settings.spark_master.startswith("local") else {}),
            # Executors find the same directory: nothing is copied to them.
            "spark.executor.extraClassPath": conf["spark.driver.extraClassPath"],
        }
    else:
        conf["spark.jars"] = ",".join(str(jar) for jar in jars)
    if not settings.spark_master.startswith("local"):
        conf["spark.executor.extraJavaOptions"] = (
            f"-Duser.timezone=UTC {' '.join(avro_limits(settings))} "
            f"{settings.spark.executor_java_options}"
        ).strip()
    return conf | settings.spark.conf


def authentication(settings: Settings) -> dict[str, str]:
    """What Spark's processes on this machine ask of each other before they talk.

    Whoever reaches a driver's port could else run code as its account. A driver that computes alone
    makes up a secret; those of the local stack's cluster read one from a file. Of another cluster
    its owner says what it asks for.
    """
    alone = settings.spark_master.partition("[")[0] == "local"
    if not alone and not of_own_cluster(settings):
        return {}
    conf = {"spark.authenticate": "true"}
    if settings.security.enabled and not alone:
        conf |= {
            "spark.network.crypto.enabled": "true",
            "spark.network.crypto.authEngineVersion": "2",
            "spark.network.crypto.cipher": "AES/GCM/NoPadding",
            "spark.network.crypto.saslFallback": "false",
            "spark.io.encryption.enabled": "true",
        }
    return conf


def of_own_cluster(settings: Settings) -> bool:
    """Whether executors are those of the local stack's own cluster."""
    return settings.local.spark_workers > 0 and not settings.spark.master


def pages_enabled(settings: Settings) -> bool:
    """Whether Spark's web pages were switched on."""
    return settings.spark.conf.get("spark.ui.enabled", "").lower() == "true"


def cluster_secret_file(settings: Settings) -> Path:
    """The properties that hold the secret of the local stack's cluster; for their owner only."""
    return settings.secrets_dir / "spark-cluster.conf"


def on_this_machine(master: str) -> bool:
    """Whether a master's driver and executors run here and reach each other on loopback.

    >>> [on_this_machine(one) for one in ("local[2]", "spark://127.0.0.1:7077", "yarn")]
    [True, True, False]
    """
    return master.startswith(("local", f"spark://{LOOPBACK}:"))


def avro_limits(settings: Settings) -> list[str]:
    """Options of a JVM that decodes Avro.

    A broken record may claim a length of 2 GiB, and Avro makes room before it reads: the process
    would end, and meet the record again after each start.
    """
    most = settings.streams.max_record_bytes
    limited = ("bytes.maxLength", "string.maxLength", "collectionItems.maxLength")
    return [f"-Dorg.apache.avro.limits.{name}={most}" for name in limited]


def session_environment(settings: Settings) -> dict[str, str]:
    """Environment variables that a JVM started for this project needs beside its conf.

    Spark's web pages bind every interface unless ``SPARK_LOCAL_IP`` says otherwise; no
    configuration key does that. PySpark puts all configuration on the driver's command line, which
    everybody may read, so a driver finds the cluster's secret in a file.
    """
    if not on_this_machine(settings.spark_master):
        return {}
    variables = {"SPARK_LOCAL_IP": LOOPBACK}
    if of_own_cluster(settings):
        options = ["--properties-file", str(cluster_secret_file(settings)), "pyspark-shell"]
        variables["PYSPARK_SUBMIT_ARGS"] = shlex.join(options)
    return variables


def all_jars(settings: Settings) -> list[Path]:
    """The extra jars of Spark's class path, and those that a lake in S3 asks for.

    Raises:
        JarsMissingError: Delta is not where the settings say.
        StoreJarsMissingError: the lake is in S3, and what reaches it is not there.
    """
    return [*spark_jars(settings), *(store_jars(settings) if in_s3(settings.lake) else [])]


def spark_jars(settings: Settings) -> list[Path]:
    """The extra jars of Spark's class path.

    Raises:
        JarsMissingError: the directory is missing, or Delta is not in it.
    """
    jars = sorted(settings.spark_jars.glob("*.jar"))
    if not any(jar.name.startswith("delta-spark") for jar in jars):
        raise JarsMissingError(str(settings.spark_jars))
    return jars


def check_java() -> None:
    """Refuse to start a JVM where there is no Java.

    Raises:
        JavaMissingError: no ``java`` in JAVA_HOME or on PATH.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin/java") if home else "java"
    if shutil.which(java) is None:
        raise JavaMissingError(java)


def connect_url_file(settings: Settings) -> Path:
    """The file that names the local stack's Connect server while it runs for this state."""
    return settings.state / CONNECT_URL_FILE
