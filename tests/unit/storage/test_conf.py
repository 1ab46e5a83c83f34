"""Spark's configuration, and what is said where Java, jars or a server are missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.sections import SparkSettings
from spark_jobs.settings import Settings, load_settings
from spark_jobs.storage.conf import (
    archive_file,
    check_java,
    session_conf,
    session_environment,
    spark_jars,
)
from spark_jobs.storage.errors import (
    JarsMissingError,
    JavaMissingError,
    StoreJarsMissingError,
)
from spark_jobs.storage.log_store import JAR, JAVA_CLASS


def settings(tmp_path: Path, **change: object) -> Settings:
    jars = tmp_path / "jars"
    jars.mkdir(exist_ok=True)
    (jars / "delta-spark_2.13-1.jar").touch()
    (jars / "other.jar").touch()
    s3 = tmp_path / "s3"
    s3.mkdir(exist_ok=True)
    for name in ("hadoop-aws-1.jar", JAR):
        (s3 / name).touch()
    places = {"spark_jars": jars, "s3_jars": s3}
    return load_settings(tmp_path, state_dir=tmp_path / "state", **{**places, **change})


def test_a_local_spark_binds_loopback_only(tmp_path: Path) -> None:
    conf = session_conf(settings(tmp_path))
    for key in ("driver.host", "driver.bindAddress", "connect.grpc.binding.address"):
        assert conf[f"spark.{key}"] == "127.0.0.1"
    assert session_environment(settings(tmp_path)) == {"SPARK_LOCAL_IP": "127.0.0.1"}
    assert conf["spark.sql.session.timeZone"] == "UTC"
    assert "spark.jars" not in conf


@pytest.mark.parametrize(
    ("master", "own"), [("local[2]", True), ("spark://127.0.0.1:7077", False), ("yarn", False)]
)
def test_a_frozen_local_driver_is_not_declared_lost(tmp_path: Path, master: str, own: bool) -> None:
    """An executor of another process can be lost, and is replaced as Spark does by default."""
    conf = session_conf(settings(tmp_path, spark=SparkSettings(master=master)))
    timeouts = {
        key: conf.get(key)
        for key in ("spark.storage.blockManagerHeartbeatTimeoutMs", "spark.rpc.askTimeout")
    }
    assert set(timeouts.values()) == ({"365d", "1h"} if own else {None})
    # Kafka's source waits this long for a broker, so it stays as it is.
    assert "spark.network.timeout" not in conf


def test_a_driver_maps_the_archive_of_classes_that_setup_wrote(tmp_path: Path) -> None:
    (tmp_path / "with space").mkdir()
    found = settings(tmp_path / "with space")
    before = session_conf(found)["spark.driver.extraJavaOptions"]
    archive_file(found).touch()
    after = session_conf(found)["spark.driver.extraJavaOptions"]
    assert "SharedArchiveFile" not in before
    assert f"'-XX:SharedArchiveFile={archive_file(found)}'" in after


def test_no_column_keeps_the_stack_that_made_it(tmp_path: Path) -> None:
    """It is a tenth of the CPU of a small query, and is sent with each task."""
    conf = session_conf(settings(tmp_path))
    keys = ("sql.dataFrameQueryContext.enabled", "python.sql.dataFrameDebugging.enabled")
    assert {conf[f"spark.{key}"] for key in keys} == {"false"}


def test_a_cluster_is_given_the_jars_and_no_address(tmp_path: Path) -> None:
    spark = SparkSettings(master="spark://far:7077", conf={"spark.hadoop.fs.s3a.endpoint": "x"})
    chosen = settings(tmp_path, spark=spark, lake_root="s3a://bucket/lake/")
    conf = session_conf(chosen)
    assert conf["spark.jars"].count(".jar") == 4
    assert "spark.driver.host" not in conf
    assert conf["spark.hadoop.fs.s3a.endpoint"] == "x"
    assert session_environment(chosen) == {}


def test_a_lake_in_s3_is_committed_to_by_conditional_writes(tmp_path: Path) -> None:
    conf = session_conf(settings(tmp_path, lake_root="s3a://bucket/lake"))
    assert conf["spark.delta.logStore.s3a.impl"] == JAVA_CLASS
    assert "spark.hadoop.fs.s3a.endpoint" not in conf
    folders = [str(tmp_path / name / "*") for name in ("jars", "s3")]
    assert conf["spark.driver.extraClassPath"] == ":".join(folders)

    own = settings(tmp_path, local={"object_store": True}, ports={"object_store": 4711})
    assert session_conf(own)["spark.hadoop.fs.s3a.endpoint"] == "http://127.0.0.1:4711"
    plain = session_conf(settings(tmp_path))
    assert not any("s3a" in f"{key}{value}" for key, value in plain.items())


@pytest.mark.parametrize("there", ["hadoop-aws-1.jar", JAR])
def test_a_lake_in_s3_asks_for_its_jars(tmp_path: Path, there: str) -> None:
    folder = tmp_path / "some"
    folder.mkdir()
    (folder / there).touch()
    chosen = settings(tmp_path, lake_root="s3a://bucket/lake", s3_jars=folder)
    with pytest.raises(StoreJarsMissingError) as missing:
        session_conf(chosen)
    assert missing.value.directory == folder
    assert "make setup-s3" in str(missing.value.hint)


def test_settings_have_the_last_word(tmp_path: Path) -> None:
    spark = SparkSettings(conf={"spark.sql.shuffle.partitions": "9"})
    conf = session_conf(settings(tmp_path, spark=spark))
    assert conf["spark.sql.shuffle.partitions"] == "9"


def test_missing_jars_are_named_with_the_remedy(tmp_path: Path) -> None:
    chosen = load_settings(tmp_path, spark_jars=tmp_path / "none")
    with pytest.raises(JarsMissingError) as missing:
        spark_jars(chosen)
    assert missing.value.directory == str(tmp_path / "none")
    assert "make setup" in str(missing.value.hint)


def test_missing_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaMissingError) as missing:
        check_java()
    assert missing.value.looked_for == str(tmp_path / "bin/java")
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaMissingError):
        check_java()
