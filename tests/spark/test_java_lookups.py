"""What Python asks the JVM while an expression is built."""

from __future__ import annotations

from collections import Counter

import pytest
from py4j.clientserver import JavaClient
from py4j.protocol import REFLECTION_COMMAND_NAME, Py4JError
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

LOOK_UP = REFLECTION_COMMAND_NAME.strip()


@pytest.fixture
def sent(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many commands of each kind were sent to the JVM."""
    del spark
    found: Counter[str] = Counter()
    send = JavaClient.send_command

    def counted(client: JavaClient, command: str, *rest: object, **named: object) -> str:
        found[command.partition("\n")[0]] += 1
        return send(client, command, *rest, **named)

    monkeypatch.setattr(JavaClient, "send_command", counted)
    return found


def expression() -> str:
    known = sf.col("kind").isin("a", "b")
    return str(sf.when(known, sf.lit("x")).otherwise(sf.regexp_replace("kind", "a", "b")))


def test_classes_and_functions_are_looked_up_once(sent: Counter[str]) -> None:
    first = expression()
    before = sent[LOOK_UP]
    calls = sent.total()
    assert expression() == first
    assert sent[LOOK_UP] == before
    assert sent.total() > calls


def test_what_does_not_exist_is_looked_up_again_and_refused(spark: SparkSession) -> None:
    view = spark.sparkContext._jvm
    assert view is not None
    for _ in range(2):
        with pytest.raises(Py4JError, match="no_such_function"):
            view.functions.no_such_function()


def test_a_static_field_is_read_each_time(spark: SparkSession) -> None:
    view = spark.sparkContext._jvm
    assert view is not None
    limits = getattr(view, "java.lang.Integer")
    assert limits.MAX_VALUE == 2**31 - 1
    assert "MAX_VALUE" not in vars(limits)
    assert "parseInt" not in vars(limits)
    assert limits.parseInt("7") == 7
    assert "parseInt" in vars(limits)


def test_nested_classes_and_packages_stay_reachable(spark: SparkSession) -> None:
    view = spark.sparkContext._jvm
    assert view is not None
    assert str(view.java.util.ArrayList().size()) == "0"
    assert getattr(view, "java.util.AbstractMap").SimpleEntry("k", "v").getKey() == "k"
