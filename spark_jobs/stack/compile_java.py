"""Compiles the project's Java classes, as a step of setup.

``python -m spark_jobs.stack.compile_java`` runs after Maven has fetched their dependencies.
"""

from __future__ import annotations

from spark_jobs.settings import Settings, load_settings
from spark_jobs.stack import object_store
from spark_jobs.storage import log_store
from spark_jobs.storage.java_classes import ensure_classes
from spark_jobs.storage.java_compiler import SHIPPED, compile_jar


def compile_all(settings: Settings) -> None:
    """Compile the classes of sessions, the log store of Delta in S3, and the local object store."""
    ensure_classes(settings)
    folders = [str(SHIPPED / "*"), str(settings.spark_jars / "*")]
    compile_jar(log_store.JAVA_SOURCE, settings.s3_jars / log_store.JAR, folders)
    janino = [str(one) for one in SHIPPED.glob("*compiler*.jar")]
    janino += [str(one) for one in SHIPPED.glob("janino-*.jar")]
    folders = [*janino, str(settings.s3proxy_jars / "*")]
    compile_jar(object_store.JAVA_SOURCE, settings.s3proxy_jars / object_store.JAR, folders)


if __name__ == "__main__":
    compile_all(load_settings())
