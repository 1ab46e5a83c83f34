"""Compiles what is ours in Java, with the compiler that Spark has for its own queries.

A development kit for Java is not asked for, and most machines have none.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_gateway import JavaGateway

from spark_jobs.storage.rights import usual_rights

SHIPPED = Path(pyspark.__file__).parent / "jars"


def compile_jar(source: Path, jar: Path, classpath: Sequence[str]) -> None:
    """Compile one file into a jar.

    Args:
        source: Java without lambdas and without arguments of generic types.
        jar: is replaced.
        classpath: jars and patterns, the compiler's own among them.
    """
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
    # Two processes may find it missing at once.
    fresh = jar.with_suffix(f".{os.getpid()}")
    # Beside the jars that Maven fetched, and with their rights.
    with usual_rights(), zipfile.ZipFile(fresh, "w") as archive:
        for name, code in classes.items():
            archive.writestr(f"{name.replace('.', '/')}.class", code)
    fresh.replace(jar)
