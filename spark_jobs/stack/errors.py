"""The conditions that the local stack reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from spark_jobs.access.sql_names import sql_name
from spark_jobs.errors import LakehouseError, Location


@dataclass(frozen=True)
class TakenPort:
    """A port that another process listens on.

    Attributes:
        setting: the setting that names the port, for example ``ports.kafka``.
        holder: the process that listens there, if the operating system shows it.
    """

    setting: str
    port: int
    holder: str | None = None

    def __str__(self) -> str:
        held = f" is used by {self.holder}" if self.holder else " is used by another process"
        return f"Port {self.port} ({self.setting}){held}."


class PortsTakenError(LakehouseError):
    """All ports that the stack needs and other processes use."""

    condition = "PORTS_TAKEN"
    taken: Sequence[TakenPort]
    primary = "ports in use: {numbers}"
    detail = "{taken: }"
    hint = "Stop these programs, or set other ports in tidemark.yml or with {variables}."

    @property
    def numbers(self) -> str:
        return ", ".join(str(port.port) for port in self.taken)

    @property
    def variables(self) -> str:
        keys = (port.setting.upper().replace(".", "__") for port in self.taken)
        return ", ".join(f"TIDEMARK_{key}" for key in keys)


class ProgramMissingError(LakehouseError):
    """A program that the stack runs is absent or too old."""

    condition = "PROGRAM_MISSING"
    program: str
    problem: str
    _: KW_ONLY
    remedy: str
    primary = "{program}: {problem}"
    hint = "{remedy}"


class KafkaJarsMissingError(LakehouseError):
    """A directory of jars that Maven has not filled yet."""

    condition = "KAFKA_JARS_MISSING"
    directory: Path
    primary = 'no Kafka jars in "{directory}"'
    hint = "Run `make setup`, which downloads them."


class CassandraJarsMissingError(LakehouseError):
    """A directory of jars that Maven has not filled, because setup does so on demand."""

    condition = "CASSANDRA_JARS_MISSING"
    directory: Path
    primary = 'no Cassandra jars in "{directory}"'
    hint = "Run `make setup-cassandra`, which downloads them."


class ObjectStoreJarsMissingError(LakehouseError):
    """A directory of jars that Maven has not filled, because setup does so on demand."""

    condition = "OBJECT_STORE_JARS_MISSING"
    directory: Path
    primary = 'no S3Proxy in "{directory}"'
    hint = "Run `make setup-s3`, which downloads it, or set local.object_store to false."


class AttributesUnsupportedError(LakehouseError):
    """The object store's directory is on a file system without extended attributes."""

    condition = "ATTRIBUTES_UNSUPPORTED"
    directory: Path
    primary = 'files in "{directory}" cannot have extended attributes'
    detail = "The object store keeps the metadata of its objects there."
    hint = (
        "Set TIDEMARK_STATE_DIR to a directory on ext4, xfs or btrfs, or set local.object_store to "
        "false."
    )


class TooLittleMemoryError(LakehouseError):
    """Less free memory than the stack needs."""

    condition = "TOO_LITTLE_MEMORY"
    free_gib: float
    needed_gib: float
    primary = "{free_gib:.1f} GiB of memory are free, the stack needs {needed_gib:.1f} GiB"
    hint = (
        "Close other programs, or lower spark.connect_memory and spark.driver_memory together with "
        "local.free_memory_gib in tidemark.yml."
    )


class PathUnusableError(LakehouseError):
    """A directory whose path a program of the stack would read as another one."""

    condition = "PATH_UNUSABLE"
    directory: Path
    sign: str
    primary = 'the stack cannot use the directory "{directory}": its path contains {sign!r}'
    detail = "Some of its programs would cut the path there, or read it as several."
    hint = "Rename the directory, or, if the state is there, set TIDEMARK_STATE_DIR to another one."


class TooLittleDiskError(LakehouseError):
    """Less free disk space below the state directory than the stack needs."""

    condition = "TOO_LITTLE_DISK"
    directory: Path
    free_gib: float
    needed_gib: float
    primary = (
        '{free_gib:.1f} GiB are free below "{directory}", the stack needs {needed_gib:.1f} GiB'
    )
    hint = "Free some space, or set TIDEMARK_STATE_DIR to a directory on a larger disk."


class StateUnreachableError(LakehouseError):
    """PostgreSQL's user cannot access the state directory."""

    condition = "STATE_UNREACHABLE"
    directory: Path
    blocking: Path
    user: str
    primary = 'user "{user}" cannot reach the state directory "{directory}"'
    detail = (
        'PostgreSQL refuses to run as root, so it runs as {user!r}, who may not enter "{blocking}".'
    )
    hint = (
        "Set TIDEMARK_STATE_DIR to a directory that {user!r} can enter, or start the stack as an "
        "ordinary user."
    )


class RestartNeededError(LakehouseError):
    """The stack is running with different settings."""

    condition = "RESTART_NEEDED"
    differing: Sequence[str]
    primary = "the stack runs with other settings: {differing}"
    detail = "Each process has the settings that it was started with. Nothing was changed."
    hint = "`tidemark stack up --restart` stops all parts and starts them with the new ones."


class UnknownPartError(LakehouseError):
    """A name that no part of the stack has."""

    condition = "UNKNOWN_PART"
    name: str
    known: Sequence[str]
    misspelt = "name"
    primary = "the stack has no part {name!r}"
    detail = "Its parts are {known}."


class PartFailedError(LakehouseError):
    """A part that ended, or did not become ready in time."""

    condition = "PART_FAILED"
    part: str
    problem: str
    _: KW_ONLY
    log: Path | None
    tail: str = ""
    primary = 'part "{part}" {problem}'
    detail = "{end}"
    hint = "{first}`make up` tries again, `make down` stops the running parts."

    @property
    def end(self) -> str:
        return f"The end of its log:\n{self.tail}" if self.tail else ""

    @property
    def first(self) -> str:
        return f'Read "{self.log}"; ' if self.log else ""


class AirflowNotCleanedError(LakehouseError):
    """Airflow's own command that deletes old runs failed."""

    condition = "AIRFLOW_NOT_CLEANED"
    code: int
    tail: str
    primary = "old runs of Airflow are not deleted: `airflow db clean` ended with {code}"
    detail = "The end of its output:\n{tail}"
    hint = "Check that Airflow's database runs, then repeat `tidemark maintain`."


class KafkaUsersMissingError(LakehouseError):
    """Kafka's storage was formatted before it had users, and security is switched on."""

    condition = "KAFKA_USERS_MISSING"
    directory: Path
    primary = 'Kafka\'s storage in "{directory}" has no users'
    detail = (
        "Users are created when the storage is formatted. This one was formatted without them, or "
        "their passwords were removed from the directory of secrets."
    )
    hint = "Set security.enabled to false, or use a new state directory: TIDEMARK_STATE_DIR."


class AuthorityKeyMissingError(LakehouseError):
    """A server has no certificate, and the authority that clients trust has no key here."""

    condition = "AUTHORITY_KEY_MISSING"
    file: Path
    primary = 'there is no certificate "{file}"'
    detail = "The authority in tls/ca.pem is managed elsewhere: its key is not in tls/ca.key."
    hint = (
        "Put the key and the certificate there, or remove tls/ca.pem and all certificates next to "
        "it: the stack then makes an authority of its own."
    )


class EndpointSilentError(LakehouseError):
    """The SQL endpoint no longer accepts logins."""

    condition = "ENDPOINT_SILENT"
    problem: str
    primary = "the SQL endpoint {problem}"
    detail = "It did not answer its own checks; its memory may be exhausted."
    hint = "The local stack restarts it. Give it more memory: endpoint.memory."


class ConnectorFailedError(LakehouseError):
    """A connector that Kafka Connect refuses, or that failed."""

    condition = "CONNECTOR_FAILED"
    connector: str
    problem: str
    primary = 'connector "{connector}" {problem}'
    hint = "`make logs PART=connect` says why; `make up` registers the connector again."


class ChangeNotSkippedError(LakehouseError):
    """No change that waits for an answer has this position."""

    condition = "CHANGE_NOT_SKIPPED"
    position: str
    known: Sequence[str]
    misspelt = "position"
    primary = "no skipped change at {position!r} waits for an answer"
    hint = "`tidemark source skipped` lists them."


class SlotRightsError(LakehouseError):
    """The role that restarts a connector may not drop its replication slot."""

    condition = "SLOT_RIGHTS"
    role: str
    slot: str
    primary = "role {role!r} may not drop replication slot {slot!r}"
    detail = "Nothing was done."
    hint = (
        "Run in the source database: ALTER ROLE {written} REPLICATION; or repeat the command with "
        "TIDEMARK_SOURCE_DATABASE set to the URL of a role that has the right."
    )

    @property
    def written(self) -> str:
        return sql_name(self.role)


class SourceTableMissingError(LakehouseError):
    """A source whose table does not exist in its database."""

    condition = "SOURCE_TABLE_MISSING"
    file: str
    table: str
    primary = "the source database has no table {table!r}"
    hint = "Create the table, or set another table name in the source."

    def __post_init__(self) -> None:
        self.location = Location(self.file)
        super().__post_init__()


class ArraysLeftOutError(LakehouseError):
    """A warning: arrays of a table for which the connector has no placeholder."""

    condition = "ARRAYS_LEFT_OUT"
    file: str
    table: str
    columns: Sequence[str]
    primary = "the connector skips updates of table {table!r} that leave a large array as it was"
    detail = "This concerns values of more than about 2 kB in {columns}."
    hint = (
        "If there may be any, run in the source database: ALTER TABLE {written} REPLICA IDENTITY "
        "FULL. See docs/postgres-types.md."
    )

    @property
    def written(self) -> str:
        return sql_name(self.table)

    def __post_init__(self) -> None:
        self.location = Location(self.file)
        super().__post_init__()


class SourceKeyError(LakehouseError):
    """Declared keys that do not identify the rows of their table."""

    condition = "SOURCE_KEY_DIFFERS"
    file: str
    table: str
    declared: Sequence[str]
    actual: Sequence[str]
    primary = "keys {declared} do not identify the rows of table {table!r}: {found}"
    detail = "Equal rows would become one row, and an update would leave the old row."
    hint = "{remedy}"

    def __post_init__(self) -> None:
        self.location = Location(self.file)
        super().__post_init__()

    @property
    def found(self) -> str:
        return f"its key is {', '.join(self.actual)}" if self.actual else "it has no primary key"

    @property
    def remedy(self) -> str:
        if self.actual:
            return f"Declare keys: [{', '.join(self.actual)}]."
        table, key = sql_name(self.table), ", ".join(map(sql_name, self.declared))
        return f"Give it one, for instance: ALTER TABLE {table} ADD PRIMARY KEY ({key})."


class SettingsChangedError(LakehouseError):
    """The running parts have other settings, so a single part cannot be restarted."""

    condition = "SETTINGS_CHANGED"
    primary = "the stack runs with other settings than the current ones"
    hint = "Run `tidemark stack up --restart`: it restarts every part with the current settings."


class StackNotPreparedError(LakehouseError):
    """Nothing was started in the state directory yet."""

    condition = "STACK_NOT_PREPARED"
    config: Path
    primary = "this stack has no Airflow yet: {config!r} does not exist"
    hint = "Run make up first."
