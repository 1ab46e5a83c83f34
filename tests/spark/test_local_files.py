"""Local files are written without starting processes, with the modes that chmod would give."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

DIRECTORY = 0o2755


@pytest.fixture
def files(spark: SparkSession) -> Any:
    """Hadoop's local file system."""
    return _hadoop(spark).fs.FileSystem.getLocal(_configuration(spark))


@pytest.fixture
def context(spark: SparkSession) -> Any:
    """Hadoop's other interface to local files."""
    return _hadoop(spark).fs.FileContext.getFileContext(_configuration(spark))


def _hadoop(spark: SparkSession) -> Any:
    return spark.sparkContext._jvm.org.apache.hadoop


def _configuration(spark: SparkSession) -> Any:
    return spark.sparkContext._jsc.hadoopConfiguration()


def _path(spark: SparkSession, file: Path) -> Any:
    return _hadoop(spark).fs.Path(str(file))


def _mode(file: Path) -> int:
    return file.stat().st_mode & 0o7777


def _faults_of_children(spark: SparkSession) -> int:
    """Page faults of the processes that Spark's JVM started and waited for."""
    jvm = spark.sparkContext._jvm
    # Spark asks `getconf` for the size of a page once, about ten seconds after a start.
    jvm.org.apache.spark.executor.ProcfsMetricsGetter.pTreeInfo()
    pid = jvm.java.lang.ProcessHandle.current().pid()
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    # Field 11 of proc_pid_stat(5), cminflt; the first two are cut off.
    return int(fields[11 - 3])


def test_a_table_is_written_and_read_without_a_process(spark, tmp_path):
    location = str(tmp_path / "table")
    before = _faults_of_children(spark)
    for _ in range(2):
        spark.range(3).write.format("delta").mode("append").save(location)
    assert spark.read.format("delta").load(location).count() == 6
    assert _faults_of_children(spark) == before


def test_a_checkpoint_is_written_without_a_process(spark, tmp_path):
    source, checkpoint = str(tmp_path / "source"), str(tmp_path / "checkpoint")
    spark.range(3).write.format("delta").save(source)
    before = _faults_of_children(spark)
    query = (
        spark.readStream.format("delta")
        .load(source)
        .writeStream.format("delta")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start(str(tmp_path / "copy"))
    )
    query.awaitTermination()
    assert (tmp_path / "checkpoint/commits/0").exists()
    assert _faults_of_children(spark) == before


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o777, 0o444, 0o1777])
@pytest.mark.parametrize("kind", ["file", "directory", "shared directory"])
def test_modes_are_those_of_chmod(spark, files, tmp_path, kind, mode):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for one in (ours, theirs):
        if kind == "file":
            one.touch()
        else:
            one.mkdir()
        if kind == "shared directory":
            one.chmod(DIRECTORY)
    permission = _hadoop(spark).fs.permission.FsPermission(f"{mode:04o}")
    files.setPermission(_path(spark, ours), permission)
    subprocess.run(["chmod", f"{mode:04o}", str(theirs)], check=True)
    assert _mode(ours) == _mode(theirs)


def test_new_directories_keep_the_group_of_a_shared_one(spark, files, tmp_path):
    tmp_path.chmod(DIRECTORY)
    files.mkdirs(_path(spark, tmp_path / "new"))
    assert _mode(tmp_path / "new") == DIRECTORY


def test_the_mode_of_a_missing_file_is_an_error(spark, files, tmp_path):
    permission = _hadoop(spark).fs.permission.FsPermission("0600")
    with pytest.raises(Exception, match=r"(NoSuchFile|FileNotFound)Exception"):
        files.setPermission(_path(spark, tmp_path / "none"), permission)


def test_links_are_told_from_files(spark, context, tmp_path):
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("x")
    link.symlink_to(file)
    found = [context.getFileLinkStatus(_path(spark, one)) for one in (file, link)]
    assert [(one.isFile(), one.isSymlink()) for one in found] == [(True, False), (False, True)]
    with pytest.raises(Exception, match="FileNotFoundException"):
        context.getFileLinkStatus(_path(spark, tmp_path / "none"))


def test_a_damaged_file_is_found_by_its_checksum(spark, files, tmp_path):
    file = tmp_path / "file"
    out = files.create(_path(spark, file))
    out.write(bytearray(b"whole"))
    out.close()
    assert (tmp_path / ".file.crc").exists()
    file.write_text("torn!")
    with pytest.raises(Exception, match="ChecksumException"):
        files.open(_path(spark, file)).read()
