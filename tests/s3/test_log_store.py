"""The log store alone: of writes to one name one wins, whatever becomes of their answers."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from spark_jobs.settings import Settings
from tests.s3.faults import Fault, proxy

TAKEN = "java.nio.file.FileAlreadyExistsException"
ROUNDS = 25
WRITERS = 8


@pytest.fixture
def write(spark: SparkSession) -> Callable[..., str]:
    """Writes lines to a location through the log store; tells what became of it."""
    java: Any = spark.sparkContext._gateway.jvm
    shared = spark._jsparkSession.sessionState().newHadoopConf()

    def written(location: str, *lines: str, overwrite: bool = False, port: int = 0) -> str:
        conf = java.org.apache.hadoop.conf.Configuration(shared)
        if port:
            conf.set("fs.s3a.endpoint", f"http://127.0.0.1:{port}")
            # A file system of its own, as the shared one knows the store itself.
            conf.set("fs.s3a.impl.disable.cache", "true")
        store = java.tidemark.ConditionalLogStore(conf)
        content = java.java.util.ArrayList()
        for line in lines:
            content.add(line)
        path = java.org.apache.hadoop.fs.Path(location)
        try:
            store.write(path, content.iterator(), overwrite, conf)
        except Py4JJavaError as error:
            return str(error.java_exception.getClass().getName())
        return "written"

    return written


@pytest.fixture
def lines(spark: SparkSession) -> Callable[[str], list[str]]:
    """The lines of a file, read through the log store."""
    java: Any = spark.sparkContext._gateway.jvm
    conf = spark._jsparkSession.sessionState().newHadoopConf()

    def read(location: str) -> list[str]:
        found = java.tidemark.ConditionalLogStore(conf).read(
            java.org.apache.hadoop.fs.Path(location), conf
        )
        result = []
        while found.hasNext():
            result.append(found.next())
        found.close()
        return result

    return read


def version(location: str, number: int) -> str:
    return f"{location}/_delta_log/{number:020}.json"


def test_a_file_is_written_once_and_overwritten_only_on_request(write, lines, location: str):
    file = version(location, 0)
    assert write(file, "one", "ö") == "written"
    assert write(file, "two") == TAKEN
    assert lines(file) == ["one", "ö"]
    assert write(file, "three", overwrite=True) == "written"
    assert lines(file) == ["three"]


def test_of_many_writers_of_one_version_one_wins(write, lines, location: str):
    with ThreadPoolExecutor(WRITERS) as pool:
        for number in range(ROUNDS):
            file = version(location, number)
            names = [f"{number}-{writer}" for writer in range(WRITERS)]
            written = pool.map(write, [file] * WRITERS, names)
            outcomes = dict(zip(names, written, strict=True))
            winners = [name for name, outcome in outcomes.items() if outcome == "written"]
            assert sorted(outcomes.values()) == [TAKEN] * (WRITERS - 1) + ["written"]
            assert lines(file) == winners


@pytest.mark.parametrize("fault", [Fault.REFUSED, Fault.CUT_OFF, Fault.ANSWER_LOST])
def test_a_write_whose_answer_is_lost_is_known_for_ones_own(
    write, lines, store: Settings, location: str, fault: Fault
):
    left = [fault]

    def first_commit(method: str, path: str, conditional: bool) -> Fault:
        return left.pop() if conditional and left else Fault.NONE

    file = version(location, 0)
    with proxy(store.ports.object_store, first_commit) as (port, done):
        assert write(file, "mine", port=port) == "written"
        assert done[fault] == 1
        assert write(file, "another", port=port) == TAKEN
    assert lines(file) == ["mine"]


def test_after_a_lost_response_our_commit_is_distinguished_from_others(
    write, lines, store: Settings, location: str
):
    file = version(location, 0)
    assert write(file, "first") == "written"

    def lose(method: str, path: str, conditional: bool) -> Fault:
        return Fault.CUT_OFF if conditional and not done[Fault.CUT_OFF] else Fault.NONE

    with proxy(store.ports.object_store, lose) as (port, done):
        assert write(file, "second", port=port) == TAKEN
    assert lines(file) == ["first"]
