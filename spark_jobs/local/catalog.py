"""Every step of the stack's start, and the choice of some of its parts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from spark_jobs.local.airflow import airflow_steps
from spark_jobs.local.connect import connect_part, register
from spark_jobs.local.errors import UnknownPartError
from spark_jobs.local.kafka import ensure_topics, kafka_part
from spark_jobs.local.parts import Part, Step, Task
from spark_jobs.local.postgres import postgres_part
from spark_jobs.local.spark_connect import spark_connect_part
from spark_jobs.local.streams import streams_part
from spark_jobs.settings import Settings

PART_NAMES = (
    "postgres",
    "kafka",
    "connect",
    "spark-connect",
    "streams",
    "airflow-api-server",
    "airflow-scheduler",
    "airflow-dag-processor",
    "airflow-triggerer",
)
# Parts whose work the compiled manifest describes.
MANIFEST_PARTS = {"streams", "airflow-dag-processor"}


def check_part_names(names: Sequence[str]) -> tuple[str, ...]:
    """The chosen parts in the stack's order; all of them when none is chosen.

    Raises:
        UnknownPartError: no part has such a name.
    """
    for name in names:
        if name not in PART_NAMES:
            raise UnknownPartError(name, PART_NAMES)
    return tuple(name for name in PART_NAMES if not names or name in names)


def all_steps(settings: Settings) -> list[Step]:
    """Every part and task of the stack."""
    return [
        postgres_part(settings),
        kafka_part(settings),
        connect_part(settings),
        spark_connect_part(settings),
        Task("topics", partial(make_topics, settings), needs=("kafka",)),
        Task("connector", partial(make_connector, settings), needs=("connect", "postgres")),
        streams_part(settings),
        *airflow_steps(settings),
    ]


def chosen_steps(settings: Settings, names: Sequence[str]) -> list[Step]:
    """The chosen parts, and the tasks whose needs are all among them."""
    chosen = set(check_part_names(names))
    kept: list[Step] = []
    for step in all_steps(settings):
        if isinstance(step, Part):
            if step.name in chosen:
                kept.append(step)
        elif set(step.needs) <= chosen and wanted(step, chosen):
            kept.append(step)
    return kept


def wanted(task: Task, chosen: set[str]) -> bool:
    """Whether a chosen part uses what the task makes."""
    users = {
        "airflow-database": {name for name in PART_NAMES if name.startswith("airflow-")},
        "topics": {"streams"},
        "connector": {"streams"},
    }
    return bool(users[task.name] & chosen)


def make_topics(settings: Settings) -> None:
    """Make the topics of the manifest's sources, so that streams find them before any record."""
    from spark_jobs.graph.manifest import Manifest  # noqa: PLC0415

    manifest = Manifest.read(settings.manifest_file)
    ensure_topics(settings, [one.topic for one in manifest.sources.values() if one.topic])


def make_connector(settings: Settings) -> None:
    """Register the connector of the manifest's Debezium sources."""
    from spark_jobs.graph.manifest import Manifest  # noqa: PLC0415

    register(settings, Manifest.read(settings.manifest_file))
