"""All settings: origins, defaults and units. No other module reads the environment.

Order of precedence: environment variables ``TIDEMARK_*`` (nested with ``__``, for example
``TIDEMARK_PORTS__KAFKA``), then the profile that ``TIDEMARK_PROFILE`` names, a file of
``profiles/``, then ``tidemark.yml`` in the project directory, then the defaults here.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from pydantic import Field, FiniteFloat, ValidationError, model_validator
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from spark_jobs.endpoint_sections import EndpointSettings
from spark_jobs.errors import Location, ProblemsError, SettingError, SettingsFileError
from spark_jobs.project_files import UnreadableFileError, read_mapping, read_nodes
from spark_jobs.sections import (
    AirflowSettings,
    AlertSettings,
    BreakerSettings,
    ControlDatabase,
    Engine,
    GoldSettings,
    GraphSettings,
    KafkaConnectSettings,
    LineageSettings,
    LocalSettings,
    MaintenanceSettings,
    MetricSettings,
    Ports,
    ReplaySettings,
    SecuritySettings,
    SinkSettings,
    SparkSettings,
    StreamSettings,
)
from spark_jobs.setting_names import (
    SECTION,
    misplaced_values,
    problem_words,
    unread_variable,
    with_old_name,
)

REPOSITORY = Path(__file__).resolve().parent.parent
DAG_FILES = REPOSITORY / "dags"
SETTINGS_FILE = "tidemark.yml"
PROFILES = "profiles"
# In the state directory: the schedule of the demo, which every later command reads too.
DEMO_FILE = "demo.yml"
LOOPBACK = "127.0.0.1"
# Role and database of the control database in the local stack's PostgreSQL.
CONTROL = "control"
# Bucket and region of the local stack's object store.
BUCKET = "tidemark"
REGION = "us-east-1"


class Settings(BaseSettings):
    """All settings of one project directory."""

    model_config = SettingsConfigDict(
        env_prefix="TIDEMARK_", env_nested_delimiter="__", extra="forbid", frozen=True
    )

    project_dir: Path
    # The name of a file of profiles/, a named set of settings. A profile has its own state
    # directory. Empty: none.
    profile: str = Field(default="", pattern=r"^[a-z0-9-]*$")
    # The directory of all files that running processes write.
    state_dir: Path = Path()
    # The storage root: a path, or the URL of an object store. Empty: <state_dir>/lake, or the local
    # stack's object store if ``local.object_store`` is set.
    lake_root: str = ""
    # A SQLAlchemy URL. Empty: as ``local.control`` says, SQLite in <state_dir>/control.db or the
    # local stack's PostgreSQL.
    control_db: str = ""
    kafka_bootstrap_servers: str = ""
    # A libpq URL of the source database. `tidemark reconcile` reads it, for which a read-only role
    # is enough, and the connector captures it. Empty: the local stack's shop. It contains a
    # password: set it in the environment.
    source_database: str = ""
    # Directory of Spark's extra jars; see jars/spark/pom.xml.
    spark_jars: Path = REPOSITORY / "jars/spark/target/dependency"
    kafka_jars: Path = REPOSITORY / "jars/kafka/target/dependency"
    cassandra_jars: Path = REPOSITORY / "jars/cassandra/target/dependency"
    # Directory of further jars for a lake in S3; `make setup-s3` fetches them.
    s3_jars: Path = REPOSITORY / "jars/s3/target/dependency"
    s3proxy_jars: Path = REPOSITORY / "jars/s3proxy/target/dependency"
    # A name for logs and DAG tags; never part of a path.
    environment: str = "local"
    ports: Ports = Ports()
    spark: SparkSettings = SparkSettings()
    endpoint: EndpointSettings = EndpointSettings()
    streams: StreamSettings = StreamSettings()
    gold: GoldSettings = GoldSettings()
    graph: GraphSettings = GraphSettings()
    # Values of @name in the SQL of the project. A profile may set other values.
    variables: dict[str, bool | int | FiniteFloat | str] = Field(default_factory=dict)
    breaker: BreakerSettings = BreakerSettings()
    replay: ReplaySettings = ReplaySettings()
    maintenance: MaintenanceSettings = MaintenanceSettings()
    # The name of ``maintenance`` in older releases; read for one release, with a warning.
    care: dict[str, Any] | None = Field(default=None, exclude=True, repr=False)
    kafka_connect: KafkaConnectSettings = KafkaConnectSettings()
    sinks: SinkSettings = SinkSettings()
    local: LocalSettings = LocalSettings()
    security: SecuritySettings = SecuritySettings()
    airflow: AirflowSettings = AirflowSettings()
    alerts: AlertSettings = AlertSettings()
    metrics: MetricSettings = MetricSettings()
    lineage: LineageSettings = LineageSettings()

    @model_validator(mode="before")
    @classmethod
    def _read_old_names(cls, values: Any) -> Any:
        return with_old_name(values, old="care", new="maintenance")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The profile, the project's file, a demo's schedule come after the environment."""
        del dotenv_settings, file_secret_settings
        given = {**env_settings(), **init_settings()}
        project_dir = Path(given["project_dir"])
        profile = str(given.get("profile", ""))
        files = [read_settings_file(project_dir, name) for name in settings_files(profile)]
        named = [one["state_dir"] for one in (given, *files) if one.get("state_dir")]
        state = chosen_state(project_dir, named[0] if named else "", profile)
        files.append(demo_schedule(project_dir, state))
        return (
            init_settings,
            env_settings,
            *(InitSettingsSource(settings_cls, one) for one in files),
        )

    def moved_to(self, state_dir: Path) -> Settings:
        """A copy with state, lake and control database in another directory."""
        moved = {"state_dir": state_dir, "lake_root": "", "control_db": ""}
        copy = self.model_copy(update=moved)
        # The copy would keep cached paths.
        for name, attribute in vars(Settings).items():
            if isinstance(attribute, cached_property):
                copy.__dict__.pop(name, None)
        return copy

    def with_engine(self, engine: Engine) -> Settings:
        """A copy in which one engine does the work of streams and of gold."""
        chosen = {"engine": engine}
        return self.model_copy(
            update={
                "streams": self.streams.model_copy(update=chosen),
                "gold": self.gold.model_copy(update=chosen),
            }
        )

    @cached_property
    def state(self) -> Path:
        """The state directory, absolute."""
        return chosen_state(self.project_dir, self.state_dir, self.profile)

    @cached_property
    def lake(self) -> str:
        """The storage root, as a URL or an absolute path without a trailing slash."""
        if "://" in self.lake_root:
            return self.lake_root.rstrip("/")
        if self.local.object_store and not self.lake_root:
            return f"s3a://{BUCKET}/lake"
        return str(
            (self.project_dir / self.lake_root).resolve() if self.lake_root else self.state / "lake"
        )

    @cached_property
    def control_url(self) -> str:
        """The control database's SQLAlchemy URL."""
        if self.control_db:
            return self.control_db
        if self.local.control is ControlDatabase.POSTGRES:
            # The password stays in its file, because the URL is in the environment of processes.
            options = {"passfile": str(self.control_passfile)}
            if self.security.enabled:
                authority = str(self.secrets_dir / "tls/ca.pem")
                options |= {"sslmode": "verify-full", "sslrootcert": authority}
            server = f"{CONTROL}@{LOOPBACK}:{self.ports.postgres}/{CONTROL}"
            return f"postgresql+psycopg://{server}?{urlencode(options, safe='/')}"
        return f"sqlite:///{self.state / 'control.db'}"

    @cached_property
    def control_passfile(self) -> Path:
        """The password file, in libpq's form, of the control database in PostgreSQL."""
        return self.secrets_dir / "control.pgpass"

    @cached_property
    def store_endpoint(self) -> str:
        """Address of the local stack's object store."""
        return f"http://{LOOPBACK}:{self.ports.object_store}"

    @cached_property
    def store_variables(self) -> Path:
        """The file with variables of that store's clients, as JSON; written at its first start."""
        return self.secrets_dir / "object-store.json"

    @cached_property
    def kafka(self) -> str:
        """Kafka's bootstrap servers."""
        numbers = range(1, self.local.kafka_brokers + 1)
        ports = [self.ports.of("kafka", number)[1] for number in numbers]
        return self.kafka_bootstrap_servers or ",".join(f"{LOOPBACK}:{port}" for port in ports)

    @cached_property
    def spark_master(self) -> str:
        """The master of a Spark that is started here."""
        if self.spark.master:
            return self.spark.master
        if self.local.spark_workers:
            return f"spark://{LOOPBACK}:{self.ports.spark_master}"
        return "local[*]"

    @cached_property
    def manifest_file(self) -> Path:
        """The file of the compiled manifest."""
        return self.state / "manifest.json"

    @cached_property
    def status_page(self) -> Path:
        """The file that `tidemark page` writes and Airflow's page shows."""
        return self.state / "status.html"

    @cached_property
    def secrets_dir(self) -> Path:
        """Directory of generated secrets, one file each, readable by the owner only."""
        return self.state / "secrets"


def load_settings(project_dir: Path | None = None, **overrides: Any) -> Settings:
    """Read the settings of a project directory.

    Args:
        project_dir: the directory; None: ``TIDEMARK_PROJECT``, or the current one.
        overrides: values that override all other origins.

    Raises:
        ProblemsError: every unknown key and every value that does not fit, at once.
    """
    chosen = project_dir or Path(os.environ.get("TIDEMARK_PROJECT", "."))
    profile = str(overrides.get("profile", os.environ.get("TIDEMARK_PROFILE", "")))
    files = settings_files(profile)
    if not all((chosen / name).is_file() for name in files[:-1]):
        known = sorted(path.stem for path in (chosen / PROFILES).glob("*.yml"))
        problem = f"there is no {files[0]}; there is {', '.join(known) or 'no profile'}"
        raise ProblemsError([SettingError("profile", problem)])
    told: dict[tuple[str | int, ...], str] = {}
    places: dict[tuple[str | int, ...], Location] = {}
    try:
        # In the merged values, keys of a section from elsewhere hide a text in its place.
        for name in files:
            nodes = read_nodes(chosen / name, name)
            for section, place in misplaced_values(nodes, name, of=Settings):
                told[section], places[section] = SECTION, places.get(section, place)
        settings = Settings(project_dir=chosen.resolve(), **overrides)
    except (SettingsFileError, UnreadableFileError) as error:
        raise ProblemsError([error]) from error
    except SettingsError as error:
        raise ProblemsError([unread_variable(error)]) from error
    except ValidationError as error:
        for one in error.errors():
            # A variable has an error for each type that it could have.
            of_variable = one["loc"][0] == "variables" and len(one["loc"]) > 1
            words = problem_words(one["type"], one["msg"], place=one["loc"], of=Settings)
            told.setdefault(one["loc"][:2] if of_variable else one["loc"], words)
    if told:
        for key in told.keys() - places.keys():
            places[key] = Location(file_that_sets(chosen, files, key))
        raise ProblemsError(
            [SettingError(".".join(map(str, key)), told[key], location=places[key]) for key in told]
        )
    use_object_store(settings)
    return settings


def use_object_store(settings: Settings) -> None:
    """Set the environment so that this process can use the local stack's object store, if any.

    Clients of S3, in Python and in child JVMs, read their key from the environment.
    """
    if settings.local.object_store:
        with suppress(FileNotFoundError):
            os.environ.update(json.loads(settings.store_variables.read_text()))
            # The file belongs to another account.
            os.environ.pop("AWS_SESSION_TOKEN", None)


def settings_files(profile: str) -> tuple[str, ...]:
    """The files of settings, in order of precedence."""
    return (*([f"{PROFILES}/{profile}.yml"] if profile else []), SETTINGS_FILE)


def read_settings_file(project_dir: Path, name: str) -> dict[str, Any]:
    """The keys and values of a settings file; empty if it does not exist.

    Raises:
        SettingsFileError: it is not YAML, or no mapping.
        UnreadableFileError: it is not a regular file of a usual size with UTF-8 text.
    """
    found = read_mapping(project_dir / name, name)
    return {str(key): value for key, value in (found or {}).items()}


def file_that_sets(project_dir: Path, files: Sequence[str], key: Sequence[str | int]) -> str:
    """The first of the files that contains a key, or the last one."""
    for name in files[:-1]:
        found: Any = read_settings_file(project_dir, name)
        for part in key:
            found = found.get(part) if isinstance(found, dict) else None
        if found is not None:
            return name
    return files[-1]


def demo_schedule(project_dir: Path, state: Path) -> dict[str, Any]:
    """The demo's settings in the state directory: its schedule, and options of Java.

    Views that the project no longer has are left out. Settings of the project and of the
    environment override all.

    Returns:
        the keys ``every_override`` and ``scheduled_at_first`` under ``gold``, and ``java_options``
            under ``spark``; empty without such a schedule.

    Raises:
        SettingsFileError: the file is not YAML, or no mapping.
    """
    written = read_settings_file(state, DEMO_FILE)
    gold, spark = written.get("gold"), written.get("spark")
    period, first = (
        (gold.get("every_override"), gold.get("scheduled_at_first"))
        if isinstance(gold, dict)
        else (None, None)
    )
    names = [str(one) for one in first] if isinstance(first, list) else []
    there = [one for one in names if (project_dir / f"sql/gold/{one}.sql").is_file()]
    if not there or not isinstance(period, str):
        return {}
    found: dict[str, Any] = {"gold": {"every_override": period, "scheduled_at_first": there}}
    options = spark.get("java_options") if isinstance(spark, dict) else None
    return {**found, "spark": {"java_options": options}} if isinstance(options, str) else found


def chosen_state(project_dir: Path, state_dir: object, profile: str) -> Path:
    """The absolute state directory for a setting; empty: the default."""
    if state_dir and Path(str(state_dir)) != Path():
        return (project_dir / str(state_dir)).resolve()
    return default_state_dir(project_dir, profile)


def default_state_dir(project_dir: Path, profile: str = "") -> Path:
    """``.tidemark`` in the project, or a directory below /var/lib if that cannot be used.

    A profile has its own, such as ``.tidemark-cluster``, because its parts cannot use the files of
    another profile. PostgreSQL refuses to run as root, so root's stack runs it as another user, who
    must be able to reach the data. A project below a private home directory is out of that user's
    reach.
    """
    suffix = f"-{profile}" if profile else ""
    inside = project_dir / f".tidemark{suffix}"
    reachable = all(
        parent.stat().st_mode & stat.S_IXOTH for parent in project_dir.resolve().parents
    ) and bool(project_dir.resolve().stat().st_mode & stat.S_IXOTH)
    if os.geteuid() != 0 or reachable:
        return inside.resolve()
    digest = hashlib.sha256(str(project_dir.resolve()).encode()).hexdigest()[:8]
    return Path("/var/lib/tidemark") / f"{project_dir.resolve().name}-{digest}{suffix}"
