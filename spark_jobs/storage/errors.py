"""Conditions of the storage: no Java, no jars, no server, no table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from spark_jobs.errors import LakehouseError, did_you_mean


class JavaMissingError(LakehouseError):
    """Spark has no Java to run on."""

    condition = "JAVA_MISSING"

    def __init__(self, looked_for: str) -> None:
        self.looked_for = looked_for
        super().__init__(
            f"no Java found at {looked_for!r}",
            detail="Spark needs a Java runtime, version 17 or later.",
            hint="Install one (Debian: apt-get install openjdk-17-jre-headless) and put java on "
            "PATH, or set JAVA_HOME.",
        )


class JarsMissingError(LakehouseError):
    """The directory of Spark's extra jars does not hold Delta."""

    condition = "JARS_MISSING"

    def __init__(self, directory: str) -> None:
        self.directory = directory
        super().__init__(
            f"no Delta jars in {directory!r}",
            hint="Run: make setup. Or point the setting spark_jars at a directory that holds them.",
        )


class StoreJarsMissingError(LakehouseError):
    """The lake is in S3, and the jars by which Spark reaches it are not there."""

    condition = "STORE_JARS_MISSING"

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        super().__init__(
            f"no connector for S3, or no log store, in {str(directory)!r}",
            hint="Run: make setup-s3. Or point the setting s3_jars at a directory that holds them.",
        )


class SparkUnreachableError(LakehouseError):
    """A Spark Connect server is named, by a setting or by the local stack, and does not answer.

    Attributes:
        remote: the server's URL.
        seconds: how long it was tried.
        announced_in: the file in which the local stack names it; None where spark.remote does.
    """

    condition = "SPARK_UNREACHABLE"

    def __init__(
        self, remote: str, cause: str, *, seconds: float, announced_in: Path | None = None
    ) -> None:
        self.remote = remote
        self.seconds = seconds
        self.announced_in = announced_in
        named_by = "the setting spark.remote" if announced_in is None else str(announced_in)
        super().__init__(
            f"Spark Connect server {remote!r} does not answer",
            detail=f"{cause} It was tried for {seconds:.1f} seconds and is named by {named_by}.",
            hint="Start that server, or change or unset spark.remote."
            if announced_in is None
            else "See what it lacks: tidemark stack status. Start it again: make up. To work "
            "without the stack's server, stop the stack: make down.",
        )


class TableMissingError(LakehouseError):
    """A table that must exist has no Delta log."""

    condition = "TABLE_MISSING"

    def __init__(self, location: str) -> None:
        self.location_of_table = location
        super().__init__(
            f"there is no Delta table at {location!r}",
            hint="Check the location, or run what creates the table first.",
        )


class TableMovedError(LakehouseError):
    """Somebody committed to a table between looking at it and writing to it."""

    condition = "TABLE_MOVED"

    def __init__(self, location: str, cause: str) -> None:
        self.location_of_table = location
        super().__init__(
            f"somebody else committed to the table at {location!r} at the same moment",
            detail=cause,
            hint="Nothing was written. Run the step again: it looks at the table anew.",
        )


class LogUnreadableError(LakehouseError):
    """A Delta log is there and does not make sense."""

    condition = "DELTA_LOG_UNREADABLE"

    def __init__(self, location: str, cause: str) -> None:
        self.location_of_table = location
        super().__init__(
            f"the Delta log at {location!r} does not read",
            detail=cause,
            hint="Restore the table's _delta_log from a backup, or remove the table and build it "
            "again.",
        )


class TableUnknownError(LakehouseError):
    """A name that no table has which this project writes."""

    condition = "TABLE_UNKNOWN"

    def __init__(self, table: str, known: Sequence[str]) -> None:
        self.table = table
        super().__init__(
            f"this project writes no table {table!r}",
            hint=did_you_mean(table, known) or "Name a layer and a table, as in silver.orders.",
        )


class VersionsGoneError(LakehouseError):
    """Versions of a table that do not exist, or that cleaning up has taken."""

    condition = "VERSIONS_GONE"

    def __init__(self, table: str, versions: str, problem: str) -> None:
        self.table = table
        self.versions = versions
        super().__init__(
            f"the versions {versions} of {table} are not there",
            detail=problem,
            hint="Without --versions, each view counts from what it has published.",
        )


class CheckpointFormatError(LakehouseError):
    """A streaming checkpoint is in a form that this release does not read."""

    condition = "CHECKPOINT_FORMAT"

    def __init__(self, checkpoint: str, *, found: str, known: str) -> None:
        self.checkpoint = checkpoint
        self.found = found
        self.known = known
        super().__init__(
            f"checkpoint {checkpoint!r} is of format {found[:20]!r}, this release knows {known!r}",
            hint="Run the release that wrote it; docs/upgrading.md tells how to go back.",
        )
