"""Drivers map the archive of classes that setup wrote."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from spark_jobs.settings import load_settings
from spark_jobs.storage.conf import archive_file


def test_the_session_of_the_tests_maps_the_archive(spark: SparkSession, tmp_path: Path) -> None:
    archive = archive_file(load_settings(tmp_path))
    assert archive.is_file(), "`make setup` writes it"
    jvm = spark.sparkContext._gateway.proc.pid
    assert str(archive) in Path(f"/proc/{jvm}/maps").read_text("utf-8")
