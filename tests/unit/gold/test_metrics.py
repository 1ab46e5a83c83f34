"""Metrics of refreshes, as a real receiver gets them, and refreshes whose receiver is down."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

from spark_jobs.errors import ProblemsError
from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.refresh.ledger import end_attempt, open_attempt, timed_step
from spark_jobs.gold.telemetry.reporting import METRICS
from spark_jobs.planning.vector import VersionVector
from spark_jobs.sections import MetricSettings
from spark_jobs.settings import load_settings
from spark_jobs.state.attempts import AttemptStatus
from spark_jobs.storage import log
from tests.unit.gold.attempts import FULL, ORDERS, SKIP, plan, publish
from tests.unit.test_readme import text_of


class Receiver(BaseHTTPRequestHandler):
    """Answers as an OTLP receiver does, once the server lets it."""

    server: Any

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.set()
        self.server.answer.wait(30)
        if self.path == "/v1/metrics":
            self.server.got.append(ExportMetricsServiceRequest.FromString(body))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def receiver() -> Iterator[Any]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        made: Any = server
        made.got, made.asked, made.answer = [], threading.Event(), threading.Event()
        made.answer.set()
        made.address = f"http://127.0.0.1:{server.server_port}/"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield made
        finally:
            made.answer.set()
            server.shutdown()
            thread.join()


def told(context: GoldContext, address: str) -> GoldContext:
    settings = context.settings.model_copy(update={"metrics": MetricSettings(otlp=address)})
    return GoldContext(settings, context.manifest, context.store)


def points(request: ExportMetricsServiceRequest) -> dict[str, list[tuple[dict[str, str], float]]]:
    """The values by metric, each with its attributes; of a histogram, the sum."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for metric in request.resource_metrics[0].scope_metrics[0].metrics:
        kind = getattr(metric, metric.WhichOneof("data"))
        for point in kind.data_points:
            about = {one.key: one.value.string_value for one in point.attributes}
            field = "sum" if hasattr(point, "bucket_counts") else point.WhichOneof("value")
            found.setdefault(metric.name, []).append((about, getattr(point, field)))
    return found


def test_a_publication_records_rows_seconds_verdict_and_freshness(context: GoldContext) -> None:
    orders = context.locations.of(ORDERS)
    write_deltalake(orders, pa.table({"id": [1]}))
    version = log.table_version(orders)
    assert version is not None
    vector = VersionVector({ORDERS: version})
    with receiver() as server:
        told_context = told(context, server.address)
        attempt = open_attempt(told_context, plan(FULL, vector), epoch=1, seconds=0.5)
        with timed_step(told_context, attempt, "stage"):
            pass
        assert server.got == []
        publish(context, attempt, vector)
        write_deltalake(orders, pa.table({"id": [2]}), mode="append")
        context.store.update_attempt(
            attempt.attempt_id, verdict={"outcome": "warned", "expectations": 5, "failed": 2}
        )
        end_attempt(
            told_context, attempt.attempt_id, status=AttemptStatus.PUBLISHED, published_version=0
        )
        [request] = server.got
    about = {
        one.key: one.value.string_value for one in request.resource_metrics[0].resource.attributes
    }
    assert about == {
        "service.name": "tidemark",
        "service.namespace": "shop",
        "deployment.environment.name": "test",
    }
    found = points(request)
    view = {"view": "spend"}
    ended = {"status": "published", "decision": "full", "reason": "FIRST_BUILD"}
    assert found["tidemark.refresh.attempts"] == [({**view, **ended, "verdict": "warned"}, 1)]
    assert found["tidemark.refresh.rows_changed"] == [(view, 3)]
    assert found["tidemark.audit.failed_expectations"] == [(view, 2)]
    seconds = {about["step"]: value for about, value in found["tidemark.refresh.duration"]}
    assert seconds["plan"] == 0.5
    assert seconds.keys() == {"plan", "stage"}
    [(_, behind)] = found["tidemark.view.freshness"]
    assert 0 <= behind < timedelta(minutes=5).total_seconds()
    assert set(found) == set(documented())


def documented() -> list[str]:
    rows = [line for line in text_of("docs/metrics.md").splitlines() if line.startswith("| `tide")]
    return [row.split("`")[1] for row in rows]


def test_skipped_and_failed_tasks_are_reported_too(context: GoldContext) -> None:
    with receiver() as server:
        told_context = told(context, server.address)
        open_attempt(told_context, plan(SKIP), epoch=1, seconds=0.1)
        attempt = open_attempt(told_context, plan(FULL), epoch=1, seconds=0.1)
        with pytest.raises(ZeroDivisionError), timed_step(told_context, attempt, "stage"):
            raise ZeroDivisionError
        ends = [points(request)["tidemark.refresh.attempts"] for request in server.got]
    assert [about["status"] for [(about, _)] in ends] == ["skipped", "failed"]
    assert [about["reason"] for [(about, _)] in ends] == ["NO_UPSTREAM_CHANGE", "FIRST_BUILD"]


def test_by_default_nothing_is_sent(context: GoldContext, monkeypatch) -> None:
    with receiver() as server:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.address)
        open_attempt(context, plan(SKIP), epoch=1, seconds=0.1)
        assert not server.asked.is_set()


def test_a_receiver_that_does_not_answer_blocks_nothing(context: GoldContext) -> None:
    with receiver() as server:
        server.answer.clear()
        told_context = told(context, server.address)
        for _ in range(3):
            open_attempt(told_context, plan(SKIP), epoch=1, seconds=0.1)
        # All have come back while the first still waits; the others were dropped.
        assert server.asked.wait(10)
        assert server.got == []
        assert len(context.store.attempts("spend")) == 3
        server.answer.set()
        METRICS.wait()
        assert len(server.got) == 1


@pytest.mark.parametrize("address", ["http://127.0.0.1:9", "http://[", "https://127.0.0.1:9"])
def test_a_receiver_that_is_not_there_fails_nothing(context: GoldContext, address, caplog) -> None:
    with caplog.at_level(logging.CRITICAL):
        found = open_attempt(told(context, address), plan(SKIP), epoch=1, seconds=0.1)
        assert found.status is AttemptStatus.SKIPPED
        METRICS.wait()


def test_an_error_in_counting_fails_nothing(context: GoldContext, caplog) -> None:
    attempt = open_attempt(context, plan(FULL), epoch=1, seconds=0.1)
    at = Path(context.published_at("spend")) / "_delta_log"
    at.mkdir(parents=True)
    (at / f"{0:020}.json").write_text("no json\n")
    with receiver() as server:
        told_context = told(context, server.address)
        failed = end_attempt(told_context, attempt.attempt_id, status=AttemptStatus.FAILED)
        assert not server.asked.is_set()
    assert failed.status is AttemptStatus.FAILED
    assert "no metrics of" in caplog.text


@pytest.mark.parametrize("address", ["127.0.0.1:4318", "ftp://127.0.0.1", "http://a b"])
def test_an_address_that_is_none_is_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises(ProblemsError):
        load_settings(tmp_path, metrics={"otlp": address})
