"""Makes Py4J look up each Java class and each static method once in a process.

PySpark names ``functions`` and the function anew for every expression. Py4J asks the JVM both
times, and for a name without a package the JVM first searches every jar for classes that do not
exist. That was more than half the time of building an expression.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.java_gateway import JavaClass, JavaMember, JVMView

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class _KeptClass(JavaClass):  # type: ignore[misc]
    """A Java class that remembers its static methods; fields may change, so they are not kept."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if isinstance(found, JavaMember):
            self.__dict__[name] = found
        return found


class _KeptView(JVMView):  # type: ignore[misc]
    """A view of the JVM that remembers classes; a package is not kept, it may be a typing error."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if isinstance(found, JavaClass):
            found.__class__ = _KeptClass
            self.__dict__[name] = found
        return found


def keep_lookups(spark: SparkSession) -> None:
    """Keep what PySpark looks up in the JVM of a session.

    Both kinds of objects only hold names and the client, which has a connection for each thread,
    so that threads share them.

    Args:
        spark: a classic session.
    """
    # The same object is in two places of PySpark, so its class is changed.
    view: Any = spark.sparkContext._jvm  # noqa: SLF001 - PySpark has no other way to it
    view.__class__ = _KeptView
