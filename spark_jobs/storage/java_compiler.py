"""Compiles this project's Java files with the compiler that Spark embeds for its queries.

So no JDK is needed, which most machines do not have.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from spark_jobs.storage.rights import usual_rights

# Found without importing PySpark, for which every command would wait.
SHIPPED = Path(str(distribution("pyspark").locate_file("pyspark/jars")))


def compile_jar(source: Path, jar: Path, classpath: Sequence[str]) -> None:
    """Compile one file into a jar.

    Args:
        source: Java code without lambdas and without generic method arguments.
        jar: file to write or replace.
        classpath: jars and glob patterns, including the compiler's.
    """
    from py4j.java_gateway import JavaGateway  # noqa: PLC0415 - it imports PySpark's parts

    [py4j] = SHIPPED.glob("py4j-*.jar")
    gateway: Any = JavaGateway.launch_gateway(
        jarpath=str(py4j), classpath=":".join(classpath), die_on_exit=True
    )
    try:
        compiler = gateway.jvm.org.codehaus.janino.SimpleCompiler()
        compiler.cook(source.read_text("utf-8"))
        classes = {str(name): bytes(code) for name, code in compiler.getBytecodes().items()}
    finally:
        gateway.shutdown()
    # Two processes may compile it at the same time.
    fresh = jar.with_suffix(f".{os.getpid()}")
    # With the same permissions as the jars that Maven fetched.
    with usual_rights(), zipfile.ZipFile(fresh, "w") as archive:
        for name, code in classes.items():
            archive.writestr(f"{name.replace('.', '/')}.class", code)
    fresh.replace(jar)
