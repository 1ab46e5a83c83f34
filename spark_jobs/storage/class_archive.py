"""The archive of a Spark driver's loaded classes, which makes its start a third cheaper.

Reading and verifying Spark's 20,000 classes takes most of the CPU time of a driver's start. Java
writes them to a file when a process ends, and later processes map that file (application
class-data sharing, JEP 350). Java ignores an archive of another Java or another class path.

``python -m spark_jobs.storage.class_archive`` writes it, as a step of setup.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_jobs.settings import Settings, load_settings
from spark_jobs.storage.conf import archive_file
from spark_jobs.storage.session import QUIET, driver_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Writing the archive takes about ten seconds on an idle core.
END_SECONDS = 300
# A plugin that starts a Connect server, so that its classes are in the archive too.
_CONNECT = {
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.port": "0",
}


def write_archive(settings: Settings) -> Path:
    """Run what drivers run first, and keep the classes that this loaded.

    Args:
        settings: name the jars of Spark's class path; the archive is written beside them.

    Returns:
        The archive.

    Raises:
        JarsMissingError: Delta's jars are not there.
        JavaMissingError: Java is not installed.
        OSError: Java wrote no archive.
        subprocess.TimeoutExpired: Java did not end.
    """
    file = archive_file(settings)
    file.unlink(missing_ok=True)
    fresh = file.with_suffix(f".{os.getpid()}")
    with tempfile.TemporaryDirectory(prefix="tidemark-classes-") as folder:
        state = Path(folder)
        options = f"{settings.spark.java_options} -XX:ArchiveClassesAtExit={fresh} -Xlog:cds=off"
        spark = driver_session(
            load_settings(
                state,
                state_dir=state / "state",
                spark_jars=settings.spark_jars,
                spark=settings.spark.model_copy(
                    update={"master": "local[2]", "remote": "", "java_options": options}
                ),
            ),
            "class archive",
            conf={**QUIET, **_CONNECT},
        )
        _use(spark, state)
        _end(spark)
    # A JVM that maps half an archive dies.
    fresh.replace(file)
    return file


def _use(spark: SparkSession, folder: Path) -> None:
    """A table is created, merged into, read, and read as a stream."""
    table = f"delta.`{folder / 'table'}`"
    spark.sql(f"CREATE TABLE {table} USING DELTA AS SELECT id, id * 2 AS twice FROM range(100)")
    spark.sql(
        f"MERGE INTO {table} AS t USING (SELECT id FROM range(50, 150)) AS s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET twice = 1 "
        "WHEN NOT MATCHED THEN INSERT (id, twice) VALUES (s.id, 2)"
    )
    spark.sql(f"SELECT twice % 3, count(*) FROM {table} GROUP BY 1").collect()
    stream = spark.readStream.format("delta").load(str(folder / "table"))
    query = (
        stream.writeStream.format("noop")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def _end(spark: SparkSession) -> None:
    """Stop the session, and wait until its JVM has written the archive."""
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001
    process: subprocess.Popen[bytes] = gateway.proc
    spark.stop()
    gateway.shutdown()
    if process.stdin is not None:
        with suppress(BrokenPipeError):
            process.stdin.close()
    process.wait(END_SECONDS)


if __name__ == "__main__":
    write_archive(load_settings())
