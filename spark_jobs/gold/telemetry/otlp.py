"""Builds the OpenTelemetry metrics of an attempt and sends them over OTLP."""

from __future__ import annotations

from typing import Any, Final

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics import Counter, Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    InMemoryMetricReader,
    MetricsData,
)
from opentelemetry.sdk.resources import Resource

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.base.freshness import behind_since
from spark_jobs.gold.base.publications import latest_publication
from spark_jobs.state.attempts import AttemptStatus, RefreshAttempt
from spark_jobs.state.types import utc_now
from spark_jobs.storage.history import rows_of_commit

# Timeout of an export, retries included.
TIMEOUT_SECONDS: Final = 2.0


def send(found: MetricsData, address: str) -> None:
    """Send metrics to the OTLP receiver at an HTTP address; failures are logged."""
    endpoint = f"{address.rstrip('/')}/v1/metrics"
    OTLPMetricExporter(endpoint=endpoint, timeout=TIMEOUT_SECONDS).export(found)


def measured(context: GoldContext, attempt: RefreshAttempt) -> MetricsData:
    """The metrics of one attempt, with delta temporality."""
    delta: Any = dict.fromkeys((Counter, Histogram), AggregationTemporality.DELTA)
    reader = InMemoryMetricReader(preferred_temporality=delta)
    about = {
        "service.name": "tidemark",
        "service.namespace": context.manifest.project,
        "deployment.environment.name": context.settings.environment,
    }
    provider = MeterProvider([reader], resource=Resource(about), shutdown_on_exit=False)
    meter = provider.get_meter("tidemark")
    view, verdict, actual = {"view": attempt.view}, attempt.verdict or {}, attempt.actual or {}
    ended = {
        **view,
        "status": attempt.status.value,
        "decision": attempt.decision or "",
        "reason": attempt.reason_code or "",
        "verdict": verdict.get("outcome", "none"),
    }
    meter.create_counter("tidemark.refresh.attempts", unit="{attempt}").add(1, ended)
    failed = meter.create_counter("tidemark.audit.failed_expectations", unit="{expectation}")
    failed.add(verdict.get("failed", 0), view)
    took = meter.create_histogram("tidemark.refresh.duration", unit="s")
    for step, seconds in actual.get("seconds", {}).items():
        took.record(seconds, {**view, "step": step})
    if (rows := _rows_changed(context, attempt)) is not None:
        meter.create_counter("tidemark.refresh.rows_changed", unit="{row}").add(rows, view)
    if (behind := _behind_seconds(context, attempt.view)) is not None:
        meter.create_gauge("tidemark.view.freshness", unit="s").set(behind, view)
    found = reader.get_metrics_data()
    return MetricsData(resource_metrics=[]) if found is None else found


def _rows_changed(context: GoldContext, attempt: RefreshAttempt) -> int | None:
    if attempt.status is not AttemptStatus.PUBLISHED or attempt.published_version is None:
        return None
    return rows_of_commit(context.published_at(attempt.view), attempt.published_version)


def _behind_seconds(context: GoldContext, view: str) -> float | None:
    publication = latest_publication(context.published_at(view))
    if publication is None:
        return None
    since = behind_since(context, publication)
    return 0.0 if since is None else max((utc_now() - since).total_seconds(), 0.0)
