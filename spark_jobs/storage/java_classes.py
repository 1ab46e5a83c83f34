"""The Java classes that every Spark session has: each source is compiled to a jar next to Delta's.

``Guard.java`` restricts what a query may read, with ``Policy.java`` and ``Reading.java``.
``LocalFiles.java`` writes local files without starting a process for each.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from spark_jobs.settings import Settings
from spark_jobs.storage.errors import JarsMissingError
from spark_jobs.storage.java_compiler import SHIPPED, compile_jar

# Hadoop's two interfaces to local files.
LOCAL_FILES_CONF: Final = {
    "spark.hadoop.fs.file.impl": "tidemark.LocalFiles",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "tidemark.LocalFiles$Context",
}
# Each after those that it uses.
SOURCES: Final = tuple(
    Path(__file__).with_name(f"{name}.java")
    for name in ("Policy", "Reading", "Guard", "LocalFiles")
)


def class_jars(settings: Settings) -> dict[Path, Path]:
    """The jar of each source; its name contains the hash of the source."""
    return {source: settings.spark_jars / _name(source, _digest(source)) for source in SOURCES}


def ensure_classes(settings: Settings) -> None:
    """Compile what has no jar yet, next to Delta's jars.

    Raises:
        JarsMissingError: a jar is missing and cannot be written.
    """
    for source, jar in class_jars(settings).items():
        if jar.exists():
            continue
        try:
            compile_jar(source, jar, [str(SHIPPED / "*"), str(settings.spark_jars / "*")])
        except OSError as error:
            raise JarsMissingError(str(settings.spark_jars)) from error
        for old in settings.spark_jars.glob(_name(source, "*")):
            if old != jar:
                old.unlink(missing_ok=True)


def _name(source: Path, digest: str) -> str:
    return f"tidemark-{source.stem.lower()}-{digest}.jar"


def _digest(source: Path) -> str:
    return hashlib.sha256(source.read_bytes()).hexdigest()[:12]
