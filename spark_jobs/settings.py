"""Every setting: where it comes from, its default and its unit. Nothing else reads the environment.

Order of precedence: environment variables ``TIDEMARK_*`` (nested with ``__``, for example
``TIDEMARK_PORTS__KAFKA``), then ``tidemark.yml`` in the project directory, then the defaults here.
"""

from __future__ import annotations

import hashlib
import os
import stat
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    YamlConfigSettingsSource,
)

from spark_jobs.errors import Location, ProblemsError, SettingError
from spark_jobs.sections import (
    AirflowSettings,
    AlertSettings,
    BreakerSettings,
    CareSettings,
    GoldSettings,
    GraphSettings,
    KafkaConnectSettings,
    LineageSettings,
    LocalSettings,
    MetricSettings,
    Ports,
    ReplaySettings,
    SecuritySettings,
    SinkSettings,
    SparkSettings,
    StreamSettings,
)

REPOSITORY = Path(__file__).resolve().parent.parent
SETTINGS_FILE = "tidemark.yml"


class Settings(BaseSettings):
    """All settings of one project directory."""

    model_config = SettingsConfigDict(
        env_prefix="TIDEMARK_", env_nested_delimiter="__", extra="forbid", frozen=True
    )

    project_dir: Path
    # Everything that runs writes below this one directory.
    state_dir: Path = Path()
    # The storage root: a path, or the URL of an object store. Empty: <state_dir>/lake.
    lake_root: str = ""
    # A SQLAlchemy URL. Empty: SQLite in <state_dir>/control.db.
    control_db: str = ""
    kafka_bootstrap_servers: str = ""
    # A libpq URL of the database that changes come from. `tidemark reconcile` reads there, for
    # which a role that may only read is enough, and the connector captures the same database.
    # Empty: the local stack's shop. It holds a password: set it in the environment.
    source_database: str = ""
    # Directory of Spark's extra jars; see jars/spark/pom.xml.
    spark_jars: Path = REPOSITORY / "jars/spark/target/dependency"
    kafka_jars: Path = REPOSITORY / "jars/kafka/target/dependency"
    # A name for the log and the DAG tags; never part of a path.
    environment: str = "local"
    ports: Ports = Ports()
    spark: SparkSettings = SparkSettings()
    streams: StreamSettings = StreamSettings()
    gold: GoldSettings = GoldSettings()
    graph: GraphSettings = GraphSettings()
    breaker: BreakerSettings = BreakerSettings()
    replay: ReplaySettings = ReplaySettings()
    care: CareSettings = CareSettings()
    kafka_connect: KafkaConnectSettings = KafkaConnectSettings()
    sinks: SinkSettings = SinkSettings()
    local: LocalSettings = LocalSettings()
    security: SecuritySettings = SecuritySettings()
    airflow: AirflowSettings = AirflowSettings()
    alerts: AlertSettings = AlertSettings()
    metrics: MetricSettings = MetricSettings()
    lineage: LineageSettings = LineageSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The project's file comes after the environment and before the defaults."""
        del dotenv_settings, file_secret_settings
        project_dir = Path(init_settings()["project_dir"])
        return (
            init_settings,
            env_settings,
            YamlConfigSettingsSource(settings_cls, yaml_file=project_dir / SETTINGS_FILE),
        )

    @cached_property
    def state(self) -> Path:
        """The state directory, absolute."""
        if self.state_dir != Path():
            return (self.project_dir / self.state_dir).resolve()
        return default_state_dir(self.project_dir)

    @cached_property
    def lake(self) -> str:
        """The storage root, as a URL or an absolute path without a trailing slash."""
        if "://" in self.lake_root:
            return self.lake_root.rstrip("/")
        return str(
            (self.project_dir / self.lake_root).resolve() if self.lake_root else self.state / "lake"
        )

    @cached_property
    def control_url(self) -> str:
        """The control database's SQLAlchemy URL."""
        return self.control_db or f"sqlite:///{self.state / 'control.db'}"

    @cached_property
    def kafka(self) -> str:
        """Kafka's bootstrap servers."""
        return self.kafka_bootstrap_servers or f"127.0.0.1:{self.ports.kafka}"

    @cached_property
    def manifest_file(self) -> Path:
        """Where the compiled manifest lies."""
        return self.state / "manifest.json"

    @cached_property
    def status_page(self) -> Path:
        """Where `tidemark page` writes, and Airflow's page reads."""
        return self.state / "status.html"

    @cached_property
    def secrets_dir(self) -> Path:
        """Directory of generated secrets, one file each, readable by the owner only."""
        return self.state / "secrets"


def load_settings(project_dir: Path | None = None, **overrides: Any) -> Settings:
    """Read the settings of a project directory.

    Args:
        project_dir: the directory; ``TIDEMARK_PROJECT`` or the current one when None.
        overrides: values that win over every other origin.

    Raises:
        ProblemsError: every unknown key and every value that does not fit, at once.
    """
    chosen = project_dir or Path(os.environ.get("TIDEMARK_PROJECT", "."))
    try:
        return Settings(project_dir=chosen.resolve(), **overrides)
    except ValidationError as error:
        place = Location(SETTINGS_FILE)
        raise ProblemsError(
            [
                SettingError(".".join(map(str, one["loc"])), one["msg"], location=place)
                for one in error.errors()
            ]
        ) from error


def default_state_dir(project_dir: Path) -> Path:
    """``.tidemark`` in the project, or a directory below /var/lib where that cannot serve.

    PostgreSQL refuses to run as root, so root's stack runs it as another user, who must be able to
    reach the data: a project below a private home directory is out of that user's reach.
    """
    inside = project_dir / ".tidemark"
    reachable = all(
        parent.stat().st_mode & stat.S_IXOTH for parent in project_dir.resolve().parents
    ) and bool(project_dir.resolve().stat().st_mode & stat.S_IXOTH)
    if os.geteuid() != 0 or reachable:
        return inside.resolve()
    digest = hashlib.sha256(str(project_dir.resolve()).encode()).hexdigest()[:8]
    return Path("/var/lib/tidemark") / f"{project_dir.resolve().name}-{digest}"
