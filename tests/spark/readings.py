"""How Spark itself reads SQL, for tests that compare it with other readers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

SOURCE = Path(__file__).with_name("Readings.java")


class Readings:
    """Spark's lexer and parser, in the process of a classic session."""

    def __init__(self, spark: SparkSession) -> None:
        self.gateway: Any = spark.sparkContext._gateway
        self.session: Any = spark._jsparkSession  # type: ignore[attr-defined]
        java = self.gateway.jvm
        compiler = java.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(java.java.lang.Thread.currentThread().getContextClassLoader())
        compiler.cook(SOURCE.read_text("utf-8"))
        self.java = compiler.getClassLoader().loadClass("tests.Readings").newInstance()

    def lexemes(self, texts: Sequence[str]) -> list[str]:
        """The tokens of each text, one a line with its place; no comments and no hints."""
        return list(self.java.lexemes(self._list(texts)))

    def names(self, texts: Sequence[str]) -> list[frozenset[str]]:
        """What the plan of each text names, as ``relation a.b``; ``error`` where it has none."""
        found = self.java.names(self.session, self._list(texts))
        return [frozenset(one.splitlines()) for one in found]

    def conditions(self, texts: Sequence[str]) -> list[str]:
        """The condition with which Spark refuses each text; "" where it takes it."""
        return list(self.java.conditions(self.session, self._list(texts)))

    def usages(self, names: Sequence[str]) -> list[str]:
        """How Spark describes each of its functions."""
        return list(self.java.usages(self.session, self._list(names)))

    def _list(self, texts: Sequence[str]) -> Any:
        found = self.gateway.jvm.java.util.ArrayList()
        for one in texts:
            found.add(one)
        return found


@cache
def readings(spark: SparkSession) -> Readings:
    """The one for a session: its class must be loaded once."""
    return Readings(spark)
