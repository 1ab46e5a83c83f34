"""Error conditions of storage: Java, jars, servers, tables, checkpoints."""

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
    """Java is not installed."""

    condition = "JAVA_MISSING"
    looked_for: str
    primary = "no Java found at {looked_for!r}"
    detail = "Spark needs a Java runtime, version 17 or later."
    hint = (
        "Install one (Debian: apt-get install openjdk-17-jre-headless) and put java on PATH, or "
        "set JAVA_HOME."
    )


class JvmNotStartedError(LakehouseError):
    """A JVM under another account exited at once, or does not answer."""

    condition = "JVM_NOT_STARTED"
    account: str
    status: int | None
    primary = "Spark as the account {account!r} {how}"
    hint = (
        "The previous lines say why. The account must be able to run Java and to read Spark's jars."
    )

    @property
    def how(self) -> str:
        return "does not answer" if self.status is None else f"ended with status {self.status}"


class JarsMissingError(LakehouseError):
    """The directory of Spark's extra jars lacks Delta."""

    condition = "JARS_MISSING"
    directory: str
    primary = "no Delta jars in {directory!r}"
    hint = "Run: make setup. Or set spark_jars to a directory with the jars."


class StoreJarsMissingError(LakehouseError):
    """The lake is in S3, and the jars for S3 are missing."""

    condition = "STORE_JARS_MISSING"
    directory: Path
    primary = "no connector for S3, or no log store, in {directory!r}"
    hint = "Run: make setup-s3. Or set s3_jars to a directory with the jars."


class SparkUnreachableError(LakehouseError):
    """A Spark Connect server does not answer; a setting or the local stack names it.

    Attributes:
        remote: the server's URL.
        seconds: how long the client tried.
        announced_in: the local stack's file that names it; None if spark.remote does.
    """

    condition = "SPARK_UNREACHABLE"
    remote: str
    cause: str
    _: KW_ONLY
    seconds: float
    announced_in: Path | None = None
    primary = "Spark Connect server {remote!r} does not answer"
    detail = "{cause} It was tried for {seconds:.1f} seconds; its address comes from {named_by}."
    hint = "{remedy}"

    @property
    def named_by(self) -> str:
        return "the setting spark.remote" if self.announced_in is None else str(self.announced_in)

    @property
    def remedy(self) -> str:
        if self.announced_in is None:
            return "Start that server, or change or unset spark.remote."
        return (
            "Check it: tidemark stack status. Restart it: make up. To work "
            "without the stack's server, stop the stack: make down."
        )


class TableMissingError(LakehouseError):
    """A required table does not exist."""

    condition = "TABLE_MISSING"
    location_of_table: str
    primary = "there is no Delta table at {location_of_table!r}"
    hint = (
        "It was not written yet, or was deleted: the streams write bronze and silver, `tidemark "
        "refresh` writes gold. For an external table, check the location."
    )


class FilesRemainError(LakehouseError):
    """Files of a table that is to be deleted cannot be deleted."""

    condition = "FILES_REMAIN"
    location_of_table: str
    problem: str
    primary = "files of the table at {location_of_table!r} cannot be deleted"
    detail = "{problem}."
    hint = (
        "Run the command again as the account that owns the lake, or give this one the right to "
        "write there. The table is still known."
    )


class TableMovedError(LakehouseError):
    """Another writer committed to a table between a read and a write."""

    condition = "TABLE_MOVED"
    location_of_table: str
    cause: str
    primary = "another process committed to the table at {location_of_table!r} at the same time"
    detail = "{cause}"
    hint = "Nothing was written. Run the step again."


class LogUnreadableError(LakehouseError):
    """A Delta log exists but cannot be read."""

    condition = "DELTA_LOG_UNREADABLE"
    location_of_table: str
    cause: str
    primary = "the Delta log at {location_of_table!r} cannot be read"
    detail = "{cause}"
    hint = "Restore the table's _delta_log from a backup, or remove the table and rebuild it."


class TableUnknownError(LakehouseError):
    """No table of this project has that name."""

    condition = "TABLE_UNKNOWN"
    table: str
    known: Sequence[str]
    misspelt = "table"
    primary = "this project has no table {table!r}"
    hint = "Name a layer and a table, as in silver.orders."


class VersionsGoneError(LakehouseError):
    """The versions of a table do not exist, or were vacuumed."""

    condition = "VERSIONS_GONE"
    table: str
    versions: str
    problem: str
    primary = "the versions {versions} of {table} do not exist"
    detail = "{problem}"
    hint = "Without --versions, each view counts from what it has published."


class CheckpointFormatError(LakehouseError):
    """A streaming checkpoint has a format that this release cannot read."""

    condition = "CHECKPOINT_FORMAT"
    checkpoint: str
    _: KW_ONLY
    found: str
    known: str
    primary = "checkpoint {checkpoint!r} has format {start!r}, but this release supports {known!r}"
    hint = "Run the release that wrote it; docs/upgrading.md explains how to go back."

    @property
    def start(self) -> str:
        return self.found[:20]
