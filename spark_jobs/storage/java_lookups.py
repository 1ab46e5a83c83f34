"""Makes Py4J look up each Java class and each static method once in a process.

PySpark names ``functions`` and the function anew for every expression. Py4J asks the JVM both times,
and for a name without a package the JVM first searches every jar for classes that do not exist.
That was more than half the time of building an expression.
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
            found = self.__dict__[name] = _KeptClass(found._fqn, self._gateway_client)
        return found


def keep_lookups(spark: SparkSession) -> None:
    """Keep what PySpark looks up in the JVM of a session.

    Both kinds of objects only hold names and the client, which has a connection for each thread,
    so that threads share them.

    Args:
        spark: a classic session.
    """
    context: Any = spark.sparkContext
    view = context._jvm
    kept = _KeptView(view._gateway_client, view._jvm_name, id=view._id)
    kept.__dict__.update(vars(view))
    # PySpark keeps the view in two places, and both outlive the session.
    type(context)._jvm = type(context)._gateway.jvm = kept
