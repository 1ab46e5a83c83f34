"""Builds and sends the OpenLineage events of an attempt."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import NAMESPACE_URL, uuid5

from openlineage.client import OpenLineageClient, facet_v2
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState

from spark_jobs.gold.base.context import GoldContext, gold_table
from spark_jobs.gold.telemetry.column_lineage import column_lineage
from spark_jobs.graph.manifest import GoldEntry
from spark_jobs.graph.personal import reads_personal, without_values
from spark_jobs.names import TableName
from spark_jobs.planning.work import vector_in
from spark_jobs.state.attempts import AttemptStatus, RefreshAttempt
from spark_jobs.state.types import utc_now
from spark_jobs.storage.history import rows_of_commit
from spark_jobs.storage.lake import plain_location

PRODUCER: Final = "urn:tidemark"
_STATES: Final = {
    AttemptStatus.PUBLISHED: RunState.COMPLETE,
    AttemptStatus.SUPERSEDED: RunState.ABORT,
    AttemptStatus.BLOCKED: RunState.FAIL,
    AttemptStatus.FAILED: RunState.FAIL,
}


def send(event: RunEvent, transport: Mapping[str, Any]) -> None:
    """Send an event; ``transport`` is a transport configuration of the OpenLineage client."""
    client = OpenLineageClient(config={"transport": dict(transport)})
    try:
        client.emit(event)
    finally:
        client.close()


def event_of(context: GoldContext, attempt: RefreshAttempt) -> RunEvent:
    """The event for an attempt's current status; all events of an attempt share one run id.

    Skipped attempts have no event: nothing ran.
    """
    entry = context.entry(attempt.view)
    return RunEvent(
        eventType=_STATES.get(attempt.status, RunState.START),
        eventTime=utc_now().isoformat(),
        producer=PRODUCER,
        run=Run(
            str(uuid5(NAMESPACE_URL, f"tidemark:{attempt.attempt_id}")),
            _run_facets(attempt, hides_values=reads_personal(context.manifest, entry)),
        ),
        job=Job(context.manifest.project, str(entry.table_name), _job_facets(entry)),
        inputs=[
            InputDataset(*_place(context, table), facets=_dataset_facets(context, table, version))
            for table, version in _inputs(attempt)
        ],
        outputs=[_output(context, entry, attempt)],
    )


def _inputs(attempt: RefreshAttempt) -> list[tuple[TableName, int]]:
    return [(table, version.version) for table, version in vector_in(attempt)]


def _output(context: GoldContext, entry: GoldEntry, attempt: RefreshAttempt) -> OutputDataset:
    table, version = gold_table(entry.name), attempt.published_version
    facets = _dataset_facets(context, table, version)
    facets["schema"] = facet_v2.schema_dataset.SchemaDatasetFacet(
        fields=[
            facet_v2.schema_dataset.SchemaDatasetFacetFields(
                column.name, type=column.type, description=column.meaning
            )
            for column in entry.columns
        ]
    )
    facets["columnLineage"] = column_lineage(
        context.manifest, entry, place=partial(_place, context)
    )
    statistics: dict[str, Any] = {}
    if version is not None:
        rows = rows_of_commit(context.published_at(entry.name), version)
        counted = facet_v2.output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet
        statistics["outputStatistics"] = counted(rowCount=rows)
    return OutputDataset(*_place(context, table), facets=facets, outputFacets=statistics)


def _place(context: GoldContext, table: TableName) -> tuple[str, str]:
    """Namespace and name of a dataset, from its location."""
    location = plain_location(context.locations.of(table))
    parts = urlsplit(location)
    if not parts.netloc:
        return "file", parts.path
    return f"{parts.scheme}://{parts.netloc}", parts.path.strip("/")


def _dataset_facets(context: GoldContext, table: TableName, version: int | None) -> dict[str, Any]:
    """The dataset's table name in SQL, and its Delta version."""
    known = facet_v2.symlinks_dataset.Identifier(context.manifest.project, str(table), "TABLE")
    facets: dict[str, Any] = {
        "symlinks": facet_v2.symlinks_dataset.SymlinksDatasetFacet(identifiers=[known])
    }
    if version is not None:
        versioned = facet_v2.dataset_version_dataset.DatasetVersionDatasetFacet
        facets["version"] = versioned(datasetVersion=str(version))
    return facets


def _job_facets(entry: GoldEntry) -> dict[str, Any]:
    owner = facet_v2.ownership_job.Owner(entry.owner)
    return {
        "sql": facet_v2.sql_job.SQLJobFacet(query=entry.sql, dialect="spark"),
        "documentation": facet_v2.documentation_job.DocumentationJobFacet(entry.description),
        "ownership": facet_v2.ownership_job.OwnershipJobFacet(owners=[owner]),
        "jobType": facet_v2.job_type_job.JobTypeJobFacet(
            processingType="BATCH", integration="TIDEMARK", jobType="REFRESH"
        ),
    }


def _run_facets(attempt: RefreshAttempt, *, hides_values: bool) -> dict[str, Any]:
    """Decision and reason as tags, and the error if there is one."""
    values = {
        "decision": attempt.decision,
        "rule": attempt.rule,
        "reason": attempt.reason_code,
        "tick": attempt.tick,
        "verdict": (attempt.verdict or {}).get("outcome"),
    }
    tags = [
        facet_v2.tags_run.TagsRunFacetFields(key, value, "TIDEMARK")
        for key, value in values.items()
        if value
    ]
    facets: dict[str, Any] = {"tags": facet_v2.tags_run.TagsRunFacet(tags=tags)}
    if attempt.error:
        facets["errorMessage"] = facet_v2.error_message_run.ErrorMessageRunFacet(
            message=without_values(attempt.error) if hides_values else attempt.error,
            programmingLanguage="SQL",
        )
    return facets
