"""The conditions that the local stack reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from spark_jobs.errors import LakehouseError, Location, did_you_mean


@dataclass(frozen=True)
class TakenPort:
    """A port that another process listens on.

    Attributes:
        setting: the setting that names the port, for example ``ports.kafka``.
        holder: who listens there, where the operating system tells it.
    """

    setting: str
    port: int
    holder: str | None = None

    def __str__(self) -> str:
        held = f" is held by {self.holder}" if self.holder else " is held by another process"
        return f"Port {self.port} ({self.setting}){held}."


class PortsTakenError(LakehouseError):
    """Ports that the stack needs and others hold; all of them at once."""

    condition = "PORTS_TAKEN"

    def __init__(self, taken: Sequence[TakenPort]) -> None:
        self.taken = tuple(taken)
        variables = ", ".join(
            f"TIDEMARK_{port.setting.upper().replace('.', '__')}" for port in self.taken
        )
        super().__init__(
            "ports in use: " + ", ".join(str(port.port) for port in self.taken),
            detail=" ".join(map(str, self.taken)),
            hint=f"Stop what listens there, or set other ports in tidemark.yml or by {variables}.",
        )


class ProgramMissingError(LakehouseError):
    """A program that the stack runs is absent or too old."""

    condition = "PROGRAM_MISSING"

    def __init__(self, program: str, problem: str, *, remedy: str) -> None:
        self.program = program
        super().__init__(f"{program}: {problem}", hint=remedy)


class KafkaJarsMissingError(LakehouseError):
    """A directory of jars that Maven has not filled yet."""

    condition = "KAFKA_JARS_MISSING"

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        super().__init__(
            f'no Kafka jars in "{directory}"',
            hint="Run `make setup`, which fetches them.",
        )


class CassandraJarsMissingError(LakehouseError):
    """A directory of jars that Maven has not filled, because setup does so on demand."""

    condition = "CASSANDRA_JARS_MISSING"

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        super().__init__(
            f'no Cassandra jars in "{directory}"',
            hint="Run `make setup-cassandra`, which fetches them.",
        )


class ObjectStoreJarsMissingError(LakehouseError):
    """A directory of jars that Maven has not filled, because setup does so on demand."""

    condition = "OBJECT_STORE_JARS_MISSING"

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        super().__init__(
            f'no S3Proxy in "{directory}"',
            hint="Run `make setup-s3`, which fetches it, or set local.object_store to false.",
        )


class AttributesUnsupportedError(LakehouseError):
    """The object store would keep its data where files cannot carry attributes."""

    condition = "ATTRIBUTES_UNSUPPORTED"

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        super().__init__(
            f'files in "{directory}" cannot have extended attributes',
            detail="The object store keeps there what an object carries beside its content.",
            hint="Set TIDEMARK_STATE_DIR to a directory on ext4, xfs or btrfs, or set "
            "local.object_store to false.",
        )


class TooLittleMemoryError(LakehouseError):
    """Less free memory than the stack takes."""

    condition = "TOO_LITTLE_MEMORY"

    def __init__(self, free_gib: float, needed_gib: float) -> None:
        self.free_gib = free_gib
        self.needed_gib = needed_gib
        super().__init__(
            f"{free_gib:.1f} GiB of memory are free, the stack needs {needed_gib:.1f} GiB",
            hint="Close other programs, or lower spark.connect_memory and spark.driver_memory "
            "together with local.free_memory_gib in tidemark.yml.",
        )


class TooLittleDiskError(LakehouseError):
    """Less free space below the state directory than the stack takes."""

    condition = "TOO_LITTLE_DISK"

    def __init__(self, directory: Path, free_gib: float, needed_gib: float) -> None:
        self.directory = directory
        self.free_gib = free_gib
        self.needed_gib = needed_gib
        super().__init__(
            f'{free_gib:.1f} GiB are free below "{directory}", '
            f"the stack needs {needed_gib:.1f} GiB",
            hint="Free some space, or set TIDEMARK_STATE_DIR to a directory on a larger disk.",
        )


class StateUnreachableError(LakehouseError):
    """The state directory lies where PostgreSQL's user cannot reach it."""

    condition = "STATE_UNREACHABLE"

    def __init__(self, directory: Path, blocking: Path, user: str) -> None:
        self.directory = directory
        self.blocking = blocking
        self.user = user
        super().__init__(
            f'user "{user}" cannot reach the state directory "{directory}"',
            detail=f"PostgreSQL refuses to run as root, so it runs as {user!r}, who may not enter "
            f'"{blocking}".',
            hint=f"Set TIDEMARK_STATE_DIR to a directory that {user!r} can enter, or start the "
            "stack as an ordinary user.",
        )


class UnknownPartError(LakehouseError):
    """A name that no part of the stack has."""

    condition = "UNKNOWN_PART"

    def __init__(self, name: str, known: Sequence[str]) -> None:
        self.name = name
        super().__init__(
            f"the stack has no part {name!r}",
            detail=f"Its parts are {', '.join(known)}.",
            hint=did_you_mean(name, known),
        )


class PartFailedError(LakehouseError):
    """A part that ended, or did not become ready in time."""

    condition = "PART_FAILED"

    def __init__(self, part: str, problem: str, *, log: Path | None, tail: str = "") -> None:
        self.part = part
        self.problem = problem
        super().__init__(
            f'part "{part}" {problem}',
            detail=f"The end of its log:\n{tail}" if tail else None,
            hint=(f'Read "{log}"; ' if log else "")
            + "`make up` tries again, `make down` stops what runs.",
        )


class KafkaUsersMissingError(LakehouseError):
    """Kafka's storage was formatted before it had users, and security is switched on."""

    condition = "KAFKA_USERS_MISSING"

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        super().__init__(
            f'Kafka\'s storage in "{directory}" knows no users',
            detail="They are made when the storage is formatted, and this one was formatted "
            "without them, or their passwords were removed from the directory of secrets.",
            hint="Switch security.enabled off, or begin with a new state directory: "
            "TIDEMARK_STATE_DIR.",
        )


class EndpointSilentError(LakehouseError):
    """The SQL endpoint lets nobody in any more."""

    condition = "ENDPOINT_SILENT"

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(
            f"the SQL endpoint {problem}",
            detail="It asked itself several times; its memory may be exhausted.",
            hint="The local stack starts it again. Give it more memory: endpoint.memory.",
        )


class ConnectorFailedError(LakehouseError):
    """A connector that Kafka Connect refuses, or that failed."""

    condition = "CONNECTOR_FAILED"

    def __init__(self, connector: str, problem: str) -> None:
        self.connector = connector
        super().__init__(
            f'connector "{connector}" {problem}',
            hint="Read `make logs` of the part connect; `make up` registers the connector again.",
        )


class SourceTableMissingError(LakehouseError):
    """A source that names a table which its database does not have."""

    condition = "SOURCE_TABLE_MISSING"

    def __init__(self, file: str, table: str) -> None:
        self.table = table
        super().__init__(
            f"the source database has no table {table!r}",
            hint="Create the table, or name another one under table.",
            location=Location(file),
        )


class SourceKeyError(LakehouseError):
    """Declared keys that do not identify the rows of their table."""

    condition = "SOURCE_KEY_DIFFERS"

    def __init__(
        self, file: str, table: str, declared: Sequence[str], actual: Sequence[str]
    ) -> None:
        self.table = table
        self.declared, self.actual = tuple(declared), tuple(actual)
        named = ", ".join(declared)
        if actual:
            found = f"its key is {', '.join(actual)}"
            hint = f"Declare keys: [{', '.join(actual)}]."
        else:
            found = "it has no primary key"
            hint = f"Give it one, for instance: ALTER TABLE {table} ADD PRIMARY KEY ({named})."
        super().__init__(
            f"keys {named} do not identify the rows of table {table!r}: {found}",
            detail="Equal rows would become one row, and an update would leave the old row.",
            hint=hint,
            location=Location(file),
        )
