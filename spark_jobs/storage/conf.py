"""Spark's configuration for all processes: this one, the Connect server, streams, a cluster."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

from spark_jobs.settings import LOOPBACK, Settings
from spark_jobs.storage.errors import JarsMissingError, JavaMissingError
from spark_jobs.storage.guard import EXTENSION
from spark_jobs.storage.java_classes import LOCAL_FILES_CONF
from spark_jobs.storage.log_store import in_s3, store_conf, store_jars

LOG_CONFIGURATION = Path(__file__).with_name("log4j2.properties")
CONNECT_URL_FILE = "run/spark-connect.url"

# Settings that change the result of queries; set on every session, also of foreign servers.
SEMANTIC_CONF = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    # Not INT96, whose nanoseconds overflow silently in other readers before 1677 and after 2262.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # A missing file must fail the read: skipping it would lose rows silently.
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    # If on, SELECT '${env:NAME}' shows the server's environment.
    "spark.sql.variable.substitute": "false",
}

# In local mode driver and executor are one process. After the machine was suspended for two
# minutes, Spark would still consider the executor lost and fail its jobs.
NO_TIMEOUTS = {
    "spark.storage.blockManagerHeartbeatTimeoutMs": "365d",
    "spark.rpc.askTimeout": "1h",
    "spark.sql.broadcastTimeout": "3600",
}


def session_conf(settings: Settings) -> dict[str, str]:
    """The options of every Spark session that this project starts, by Spark's names.

    Raises:
        JarsMissingError: Delta's jars are not in the directory that the settings name.
        StoreJarsMissingError: the lake is in S3, and the jars for S3 are missing.
    """
    jars = all_jars(settings)
    folders = [settings.spark_jars, *([settings.s3_jars] if in_s3(settings.lake) else [])]
    conf = {
        **SEMANTIC_CONF,
        "spark.driver.memory": settings.spark.driver_memory,
        "spark.driver.extraJavaOptions": (
            f"-Dlog4j2.configurationFile={LOG_CONFIGURATION.as_uri()} -Duser.timezone=UTC "
            f"{' '.join([*input_limits(settings), *archive_options(settings)])} "
            f"{settings.spark.java_options}"
        ).strip(),
        "spark.driver.extraClassPath": ":".join(str(folder / "*") for folder in folders),
        "spark.sql.extensions": f"io.delta.sql.DeltaSparkSessionExtension,{EXTENSION}",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(settings.state / "spark-warehouse"),
        "spark.sql.shuffle.partitions": str(settings.spark.shuffle_partitions),
        "spark.databricks.delta.snapshotPartitions": str(settings.spark.snapshot_partitions),
        # Delta caches 10,000 logs by default, each with a megabyte of plans. Every refresh has a
        # staged table of its own, so they would fill the heap.
        "spark.databricks.delta.delta.log.cacheSize": "200",
        # Nothing reads the list of files in a checksum, and after a commit of another writer Delta
        # runs a job over the whole log to make it.
        "spark.databricks.delta.allFilesInCrc.enabled": "false",
        # Other readers (delta-rs, DuckDB) must be able to read every table.
        "spark.databricks.delta.properties.defaults.enableDeletionVectors": "false",
        # Java never compiles a longer method, so without this limit Spark's generated code for a
        # source with many checks runs interpreted. Beyond it, Spark generates shorter methods.
        "spark.sql.codegen.hugeMethodLimit": "8000",
        # The last of repeated keys in a JSON object wins; the record is not rejected.
        "spark.sql.variant.allowDuplicateKeys": "true",
        # Otherwise each Column call records its stack for error messages: a tenth of a small
        # query's CPU time, and sent with each task.
        "spark.sql.dataFrameQueryContext.enabled": "false",
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # The default of 100 compiled stages is too few for ten views, and recompiling takes most of
        # a small query's time.
        "spark.sql.codegen.cache.maxEntries": "1000",
        # Each hash table and each sort starts with a page full of zeros, by default of up to 64 MB.
        # A small refresh has several, and a tenth of its CPU time collected this garbage. A task
        # can have 8,192 pages, so at most 32 GiB.
        "spark.buffer.pageSize": "4m",
        # Spark's web UI has no login. If it is enabled, every local account sees the plans, but
        # cannot kill jobs.
        "spark.ui.enabled": "false",
        "spark.ui.killEnabled": "false",
        # Spark does not redact the login of its Kafka source by default.
        "spark.redaction.regex": "(?i)secret|password|passwd|token|access[.]?key|jaas",
        # The UI keeps finished queries on the driver's heap; a session that lives for weeks runs
        # hundreds of thousands.
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
            **(NO_TIMEOUTS if settings.spark_master.startswith("local") else {}),
            # Elsewhere, executors use files before they have this project's classes.
            **LOCAL_FILES_CONF,
            # Executors see the same directory, so no jar is copied to them.
            "spark.executor.extraClassPath": conf["spark.driver.extraClassPath"],
        }
    else:
        conf["spark.jars"] = ",".join(str(jar) for jar in jars)
    if not settings.spark_master.startswith("local"):
        conf["spark.executor.extraJavaOptions"] = (
            f"-Duser.timezone=UTC {' '.join(input_limits(settings))} "
            f"{settings.spark.executor_java_options}"
        ).strip()
    return conf | settings.spark.conf


def authentication(settings: Settings) -> dict[str, str]:
    """The authentication settings of Spark processes on this machine; none for another's cluster.

    Without them, anyone who reaches a driver's port could run code as its account. A local driver
    generates a secret; the local stack's cluster reads one from a file. The settings of any other
    cluster are up to its owner.
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
    """Whether the executors belong to the local stack's own cluster."""
    return settings.local.spark_workers > 0 and not settings.spark.master


def pages_enabled(settings: Settings) -> bool:
    """Whether Spark's web UI is enabled."""
    return settings.spark.conf.get("spark.ui.enabled", "").lower() == "true"


def cluster_secret_file(settings: Settings) -> Path:
    """The properties file with the secret of the local stack's cluster; only its owner reads it."""
    return settings.secrets_dir / "spark-cluster.conf"


def on_this_machine(master: str) -> bool:
    """Whether a master's driver and executors run on this machine and connect over loopback.

    >>> [on_this_machine(one) for one in ("local[2]", "spark://127.0.0.1:7077", "yarn")]
    [True, True, False]
    """
    return master.startswith(("local", f"spark://{LOOPBACK}:"))


def input_limits(settings: Settings) -> list[str]:
    """JVM options that limit what Avro and XML in the data can cause.

    A corrupt record may claim a length of 2 GiB, and Avro allocates before it reads: the process
    would run out of memory, again after each restart. A text in XML may name a file or an address
    on the network, which Java's parser would open for ``xpath``.
    """
    most = settings.streams.max_record_bytes
    limited = ("bytes.maxLength", "string.maxLength", "collectionItems.maxLength")
    avro = [f"-Dorg.apache.avro.limits.{name}={most}" for name in limited]
    return [*avro, "-Djavax.xml.accessExternalDTD="]


def archive_file(settings: Settings) -> Path:
    """The archive of a driver's classes; see ``storage.class_archive``."""
    return settings.spark_jars.parent / "classes.jsa"


def archive_options(settings: Settings) -> list[str]:
    """JVM options that map the archive of classes, if setup wrote one.

    Without the second option, Java prints a warning where it cannot use the archive.
    """
    file = archive_file(settings)
    if not file.is_file():
        return []
    return [shlex.quote(f"-XX:SharedArchiveFile={file}"), "-Xlog:cds+dynamic=off"]


def session_environment(settings: Settings) -> dict[str, str]:
    """Environment variables of a JVM that this project starts.

    Spark's web UI binds all interfaces unless ``SPARK_LOCAL_IP`` is set. PySpark puts configuration
    on the driver's command line, which all accounts can read, so a driver reads the cluster's
    secret from a file.
    """
    if not on_this_machine(settings.spark_master):
        return {}
    variables = {"SPARK_LOCAL_IP": LOOPBACK}
    if of_own_cluster(settings):
        options = ["--properties-file", str(cluster_secret_file(settings)), "pyspark-shell"]
        variables["PYSPARK_SUBMIT_ARGS"] = shlex.join(options)
    return variables


def all_jars(settings: Settings) -> list[Path]:
    """Extra jars of Spark's class path, with those for S3 if the lake is there.

    Raises:
        JarsMissingError: Delta is not in the directory that the settings name.
        StoreJarsMissingError: the lake is in S3, and the jars for S3 are missing.
    """
    return [*spark_jars(settings), *(store_jars(settings) if in_s3(settings.lake) else [])]


def spark_jars(settings: Settings) -> list[Path]:
    """Extra jars of Spark's class path.

    Raises:
        JarsMissingError: the directory is missing, or Delta is not in it.
    """
    jars = sorted(settings.spark_jars.glob("*.jar"))
    if not any(jar.name.startswith("delta-spark") for jar in jars):
        raise JarsMissingError(str(settings.spark_jars))
    return jars


def check_java() -> None:
    """Check that Java is installed.

    Raises:
        JavaMissingError: no ``java`` in JAVA_HOME or on PATH.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin/java") if home else "java"
    if shutil.which(java) is None:
        raise JavaMissingError(java)


def connect_url_file(settings: Settings) -> Path:
    """The file with the URL of the local stack's Connect server; exists while that runs."""
    return settings.state / CONNECT_URL_FILE
