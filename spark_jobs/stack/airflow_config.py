"""Airflow's configuration, generated below the state directory; secrets stay in their own files."""

from __future__ import annotations

import configparser
import shlex
from pathlib import Path

from spark_jobs.access.secrets import secret_path
from spark_jobs.sections import ExecutorMode
from spark_jobs.settings import DAG_FILES, REPOSITORY, Settings
from spark_jobs.stack.ports import LOOPBACK
from spark_jobs.stack.postgres import AIRFLOW, VERIFIED, authority, dsn
from spark_jobs.stack.secrets import (
    ensure_secret,
    random_fernet_key,
    random_password,
    random_signing_key,
    write_secret,
)
from spark_jobs.stack.spark_connect import connect_url

DATABASE_URL_FILE = "airflow-database-url"
FERNET_KEY_FILE = "airflow-fernet-key"
API_KEY_FILE = "airflow-api-secret"
JWT_KEY_FILE = "airflow-token-secret"

# Concurrent tasks: refreshes wait for Spark, which shares the same two cores.
PARALLELISM = 4
# Plugins: the timetable, the status page, and tasks that inherit the scheduler's imports.
PLUGINS = REPOSITORY / "spark_jobs/orchestration/plugins"


def airflow_home(settings: Settings) -> Path:
    """Airflow's directory; ``AIRFLOW_HOME`` of the caller's environment is ignored."""
    return settings.state / "airflow"


def airflow_address(settings: Settings) -> str:
    """Where users open Airflow."""
    return f"http://{LOOPBACK}:{settings.ports.airflow}"


def write_airflow_config(settings: Settings) -> None:
    """Write ``airflow.cfg`` and the secrets that it refers to."""
    ensure_secret(settings, FERNET_KEY_FILE, random_fernet_key)
    ensure_secret(settings, API_KEY_FILE, random_password)
    ensure_secret(settings, JWT_KEY_FILE, random_signing_key)
    # Both database drivers read the TLS options from the environment only.
    url = dsn(settings, database="airflow", role=AIRFLOW).partition("?")[0]
    write_secret(
        settings, DATABASE_URL_FILE, url.replace("postgresql://", "postgresql+psycopg2://", 1)
    )
    home = airflow_home(settings)
    home.mkdir(parents=True, exist_ok=True)
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_dict(airflow_options(settings))
    path = home / "airflow.cfg"
    path.touch(mode=0o600)
    with path.open("w") as file:
        parser.write(file)


def airflow_options(settings: Settings) -> dict[str, dict[str, str]]:
    """Every option that differs from Airflow's default, by section and name."""

    def from_file(secret: str) -> str:
        return shlex.join(["cat", str(secret_path(settings, secret))])

    home = airflow_home(settings)
    port = settings.ports.airflow
    return {
        "core": {
            "dags_folder": str(DAG_FILES),
            "plugins_folder": str(PLUGINS),
            "executor": "LocalExecutor",
            "parallelism": str(PARALLELISM),
            "max_active_tasks_per_dag": str(PARALLELISM),
            "auth_manager": "airflow.providers.fab.auth_manager.fab_auth_manager.FabAuthManager",
            "load_examples": "False",
            "dags_are_paused_at_creation": "False",
            "execution_api_server_url": f"{airflow_address(settings)}/execution/",
            "fernet_key_cmd": from_file(FERNET_KEY_FILE),
            "hostname_callable": "socket.gethostname",
            "min_serialized_dag_update_interval": "5",
        },
        "database": {
            "sql_alchemy_conn_cmd": from_file(DATABASE_URL_FILE),
            "sql_alchemy_pool_size": "3",
        },
        "api": {
            "host": LOOPBACK,
            "port": str(port),
            "base_url": airflow_address(settings),
            "workers": "1",
            "secret_key_cmd": from_file(API_KEY_FILE),
            "expose_config": "False",
        },
        "api_auth": {"jwt_secret_cmd": from_file(JWT_KEY_FILE)},
        "scheduler": {
            # A task whose worker was killed must not block its view for long.
            "task_instance_heartbeat_timeout": "60",
            "orphaned_tasks_check_interval": "30",
            "enable_health_check": "False",
        },
        # On a busy machine the api-server's first answer to a task takes longer than the default
        # of 5 seconds, and a task that is not answered is killed.
        "workers": {"execution_api_timeout": "30"},
        "dag_processor": {
            "refresh_interval": "30",
            "min_file_process_interval": str(settings.airflow.parse_seconds),
            "parsing_processes": "1",
            "print_stats_interval": "300",
        },
        "logging": {
            "base_log_folder": str(home / "logs"),
            "dag_processor_child_process_log_directory": str(home / "logs" / "dag_processor"),
            "colored_console_log": "False",
            "file_task_handler_new_folder_permissions": "0o700",
            "file_task_handler_new_file_permissions": "0o600",
        },
        # Roles and their permissions are made when the database is prepared.
        "fab": {"update_fab_perms": "False"},
        "usage_data_collection": {"enabled": "False"},
    }


def airflow_environment(settings: Settings) -> dict[str, str]:
    """Variables of every Airflow process, in addition to those of the stack."""
    connects = settings.airflow.executor_mode is ExecutorMode.CONNECT
    remote = settings.spark.remote or connect_url(settings)
    secure = {"PGSSLMODE": VERIFIED, "PGSSLROOTCERT": authority(settings)}
    return {
        **(secure if settings.security.enabled else {}),
        # An address, not the server's announcement file: a task that starts before the server
        # waits and tries again, instead of starting a Spark of its own.
        **({"TIDEMARK_SPARK__REMOTE": remote} if connects else {}),
        "AIRFLOW_HOME": str(airflow_home(settings)),
        "AIRFLOW_CONFIG": str(airflow_home(settings) / "airflow.cfg"),
        # The repository's package serves DAG files and tasks whether or not it is installed.
        "PYTHONPATH": str(REPOSITORY),
    }
