"""Compiles what is ours in Java, with the compiler that Spark has for its own queries.

``python -m spark_jobs.local.compile_java`` is a step of setup, after Maven has fetched what the
sources name. A development kit for Java is not asked for, and most machines have none.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_gateway import JavaGateway

from spark_jobs.local import object_store
from spark_jobs.settings import Settings, load_settings
from spark_jobs.storage import log_store

SHIPPED = Path(pyspark.__file__).parent / "jars"


def compile_all(settings: Settings) -> None:
    """Compile the log store of Delta in S3, and the object store of the local stack."""
    folders = [str(SHIPPED / "*"), str(settings.spark_jars / "*")]
    compile_jar(log_store.JAVA_SOURCE, settings.s3_jars / log_store.JAR, folders)
    janino = [str(one) for one in SHIPPED.glob("*compiler*.jar")]
    janino += [str(one) for one in SHIPPED.glob("janino-*.jar")]
    folders = [*janino, str(settings.s3proxy_jars / "*")]
    compile_jar(object_store.JAVA_SOURCE, settings.s3proxy_jars / object_store.JAR, folders)


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
    fresh = jar.with_suffix(".new")
    with zipfile.ZipFile(fresh, "w") as archive:
        for name, code in classes.items():
            archive.writestr(f"{name.replace('.', '/')}.class", code)
    fresh.replace(jar)


if __name__ == "__main__":
    compile_all(load_settings())
