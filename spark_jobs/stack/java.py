"""The Java programs of the stack: where Java is, and the options that suit a small machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from spark_jobs.stack.errors import ProgramMissingError

MINIMUM_JAVA = 17
JAVA_REMEDY = (
    "Install Java 17 (on Debian: `apt-get install openjdk-17-jre-headless`) or set JAVA_HOME to it."
)

# Small heaps on two cores: the serial collector needs no threads of its own.
SMALL_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")

LOG4J_PROPERTIES = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{yyyy-MM-dd'T'HH:mm:ss.SSSXXX}{UTC} %-5p %c{1}: %m%n
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
logger.kafka.name = kafka
logger.kafka.level = info
logger.server.name = org.apache.kafka.server
logger.server.level = info
logger.connect.name = org.apache.kafka.connect.runtime
logger.connect.level = info
logger.debezium.name = io.debezium
logger.debezium.level = info
"""

LOGBACK = """\
<configuration>
  <appender name="console" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{yyyy-MM-dd'T'HH:mm:ss.SSSXXX, UTC} %-5p %c{0}: %m%n</pattern></encoder>
  </appender>
  <root level="warn"><appender-ref ref="console"/></root>
</configuration>
"""


def java_program() -> str:
    """The ``java`` to run, of JAVA_HOME or else of PATH; it may not exist."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin/java") if home else "java"


def check_java() -> None:
    """Check that Java is installed and new enough.

    Raises:
        ProgramMissingError: it is absent or too old.
    """
    program = java_program()
    if shutil.which(program) is None:
        raise ProgramMissingError("java", f"{program!r} not found", remedy=JAVA_REMEDY)
    answer = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    version = java_major_version(answer.stderr)
    if version is None or version < MINIMUM_JAVA:
        seen = f"version {version}" if version else "an unknown version"
        raise ProgramMissingError("java", f"{program} is {seen}", remedy=JAVA_REMEDY)


def java_major_version(text: str) -> int | None:
    """The major version in the output of ``java -version``.

    >>> java_major_version('openjdk version "17.0.15" 2025-04-15')
    17
    >>> java_major_version('java version "1.8.0_392"')
    8
    """
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match[1]) if match else None


def small_java_command(
    main: str, *arguments: str, classpath: Path, log4j: Path, heap: str
) -> tuple[str, ...]:
    """A command line that runs a class of the Kafka classpath."""
    return (
        java_program(),
        f"-Xmx{heap}",
        *SMALL_JVM,
        f"-Dlog4j2.configurationFile={log4j}",
        "-cp",
        f"{classpath}/*",
        main,
        *arguments,
    )


def property_value(value: object) -> str:
    r"""A value as a Java properties file has it: in ASCII, with Java's escapes.

    Java reads the file as Latin-1, so any other path would be the one of another directory.

    >>> property_value("/home/m\u00fcller"), property_value(r"^\d")
    ('/home/m\\u00fcller', '^\\\\d')
    """
    text = str(value).replace("\\", r"\\")
    for sign, escape in {"\n": r"\n", "\r": r"\r", "\f": r"\f"}.items():
        text = text.replace(sign, escape)
    # Java skips blanks before a value.
    text = f"\\{text}" if text.startswith((" ", "\t")) else text
    return "".join(one if one.isascii() else _java_escape(one) for one in text)


def _java_escape(sign: str) -> str:
    units = sign.encode("utf-16-be", "surrogatepass").hex()
    return "".join(rf"\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def properties_text(values: Mapping[str, object]) -> str:
    """The content of a Java properties file, a line per key."""
    return "".join(f"{key}={property_value(value)}\n" for key, value in values.items())


def write_properties(path: Path, values: dict[str, object]) -> None:
    """Write a Java properties file, a line per key, that only the owner may read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(properties_text(values))
