"""Conditions of the storage: no Java, no jars, no server, no table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from pathlib import Path

from spark_jobs.errors import LakehouseError


class StateDirectoryError(LakehouseError):
    """The state directory cannot be made, or is another account's."""

    condition = "STATE_DIRECTORY"
    path: Path
    problem: str
    primary = "state directory {path} cannot be used: {problem}"
    hint = "Name a directory of yours by the setting state_dir, or correct its rights."


class JavaMissingError(LakehouseError):
    """Spark has no Java to run on."""

    condition = "JAVA_MISSING"
    looked_for: str
    primary = "no Java found at {looked_for!r}"
    detail = "Spark needs a Java runtime, version 17 or later."
    hint = (
        "Install one (Debian: apt-get install openjdk-17-jre-headless) and put java on PATH, or "
        "set JAVA_HOME."
    )


class JvmNotStartedError(LakehouseError):
    """A JVM that should run as another account ended at once, or does not answer."""

    condition = "JVM_NOT_STARTED"
    account: str
    status: int | None
    primary = "Spark as the account {account!r} {how}"
    hint = (
        "The lines before this one say why. The account must be able to run Java and to read "
        "Spark's jars."
    )

    @property
    def how(self) -> str:
        return "does not answer" if self.status is None else f"ended with status {self.status}"


class JarsMissingError(LakehouseError):
    """The directory of Spark's extra jars does not hold Delta."""

    condition = "JARS_MISSING"
    directory: str
    primary = "no Delta jars in {directory!r}"
    hint = "Run: make setup. Or point the setting spark_jars at a directory that holds them."


class StoreJarsMissingError(LakehouseError):
    """The lake is in S3, and the jars by which Spark reaches it are not there."""

    condition = "STORE_JARS_MISSING"
    directory: Path
    primary = "no connector for S3, or no log store, in {directory!r}"
    hint = "Run: make setup-s3. Or point the setting s3_jars at a directory that holds them."


class SparkUnreachableError(LakehouseError):
    """A Spark Connect server is named, by a setting or by the local stack, and does not answer.

    Attributes:
        remote: the server's URL.
        seconds: how long it was tried.
        announced_in: the file in which the local stack names it; None where spark.remote does.
    """

    condition = "SPARK_UNREACHABLE"
    remote: str
    cause: str
    _: KW_ONLY
    seconds: float
    announced_in: Path | None = None
    primary = "Spark Connect server {remote!r} does not answer"
    detail = "{cause} It was tried for {seconds:.1f} seconds and is named by {named_by}."
    hint = "{remedy}"

    @property
    def named_by(self) -> str:
        return "the setting spark.remote" if self.announced_in is None else str(self.announced_in)

    @property
    def remedy(self) -> str:
        if self.announced_in is None:
            return "Start that server, or change or unset spark.remote."
        return (
            "See what it lacks: tidemark stack status. Start it again: make up. To work "
            "without the stack's server, stop the stack: make down."
        )


class TableMissingError(LakehouseError):
    """A table that must exist has no Delta log."""

    condition = "TABLE_MISSING"
    location_of_table: str
    primary = "there is no Delta table at {location_of_table!r}"
    hint = "Check the location, or run what creates the table first."


class TableMovedError(LakehouseError):
    """Somebody committed to a table between looking at it and writing to it."""

    condition = "TABLE_MOVED"
    location_of_table: str
    cause: str
    primary = "somebody else committed to the table at {location_of_table!r} at the same moment"
    detail = "{cause}"
    hint = "Nothing was written. Run the step again: it looks at the table again."


class LogUnreadableError(LakehouseError):
    """A Delta log is there and does not make sense."""

    condition = "DELTA_LOG_UNREADABLE"
    location_of_table: str
    cause: str
    primary = "the Delta log at {location_of_table!r} does not read"
    detail = "{cause}"
    hint = "Restore the table's _delta_log from a backup, or remove the table and build it again."


class TableUnknownError(LakehouseError):
    """A name that no table has which this project writes."""

    condition = "TABLE_UNKNOWN"
    table: str
    known: Sequence[str]
    misspelt = "table"
    primary = "this project writes no table {table!r}"
    hint = "Name a layer and a table, as in silver.orders."


class VersionsGoneError(LakehouseError):
    """Versions of a table that do not exist, or that cleaning up has taken."""

    condition = "VERSIONS_GONE"
    table: str
    versions: str
    problem: str
    primary = "the versions {versions} of {table} are not there"
    detail = "{problem}"
    hint = "Without --versions, each view counts from what it has published."


class CheckpointFormatError(LakehouseError):
    """A streaming checkpoint is in a form that this release does not read."""

    condition = "CHECKPOINT_FORMAT"
    checkpoint: str
    _: KW_ONLY
    found: str
    known: str
    primary = "checkpoint {checkpoint!r} is of format {start!r}, this release knows {known!r}"
    hint = "Run the release that wrote it; docs/upgrading.md tells how to go back."

    @property
    def start(self) -> str:
        return self.found[:20]
