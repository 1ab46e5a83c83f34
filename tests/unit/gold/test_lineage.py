"""Events of OpenLineage, as its own client writes them to a file and posts them."""

from __future__ import annotations

import gzip
import json
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from deltalake import write_deltalake
from openlineage.client.serde import Serde

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.base.errors import QueryFailedError
from spark_jobs.gold.refresh.ledger import end_attempt, open_attempt, timed_step
from spark_jobs.gold.telemetry.lineage import event_of
from spark_jobs.gold.telemetry.reporting import LINEAGE
from spark_jobs.gold.telemetry.sending import Sender
from spark_jobs.graph.manifest import ApplyMode, SilverEntry
from spark_jobs.planning.vector import VersionVector
from spark_jobs.sections import LineageSettings
from spark_jobs.settings import REPOSITORY
from spark_jobs.state.attempts import AttemptStatus
from spark_jobs.storage import log
from tests.unit.gold.attempts import FULL, ORDERS, SKIP, plan, publish
from tests.unit.gold.conftest import Shop


def told(context: GoldContext, transport: dict[str, Any]) -> GoldContext:
    lineage = LineageSettings(transport=transport)
    settings = context.settings.model_copy(update={"lineage": lineage})
    return GoldContext(settings, context.manifest, context.store)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "events"


@pytest.fixture
def to_file(context: GoldContext, file: Path) -> GoldContext:
    return told(context, {"type": "file", "log_file_path": str(file), "append": True})


def events(file: Path) -> list[dict[str, Any]]:
    LINEAGE.wait()
    return [json.loads(line) for line in file.read_text().splitlines()]


def refresh(context: GoldContext) -> None:
    """Refresh the view from one version of its input."""
    orders = context.locations.of(ORDERS)
    write_deltalake(orders, pa.table({"id": [1]}))
    version = log.table_version(orders)
    assert version is not None
    vector = VersionVector({ORDERS: version})
    attempt = open_attempt(context, plan(FULL, vector), epoch=1, seconds=0.5)
    LINEAGE.wait()
    publish(context, attempt, vector)
    passed = {"outcome": "passed", "expectations": 5, "failed": 0}
    context.store.update_attempt(attempt.attempt_id, verdict=passed)
    end_attempt(context, attempt.attempt_id, status=AttemptStatus.PUBLISHED, published_version=0)
    LINEAGE.wait()


class Receiver(ThreadingHTTPServer):
    """Takes what is posted."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Posted)
        self.received: list[tuple[str, dict[str, Any]]] = []


class Posted(BaseHTTPRequestHandler):
    server: Receiver

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            text = gzip.decompress(text)
        self.server.received.append((self.path, json.loads(text)))
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.end_headers()


def test_a_receiver_gets_what_the_transport_of_the_page_posts(context: GoldContext) -> None:
    page = (REPOSITORY / "docs/lineage.md").read_text()
    shown = yaml.safe_load(page.partition("```yaml\n")[2].partition("```")[0])
    with Receiver() as receiver:
        thread = threading.Thread(target=receiver.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{receiver.server_port}"
        refresh(told(context, {**shown["lineage"]["transport"], "url": url}))
        receiver.shutdown()
        thread.join()
    assert [path for path, _ in receiver.received] == ["/api/v1/lineage"] * 2
    start, complete = (event for _, event in receiver.received)
    assert (start["eventType"], complete["eventType"]) == ("START", "COMPLETE")
    assert complete["inputs"][0]["facets"]["version"]["datasetVersion"] == "0"
    [written] = complete["outputs"]
    assert "columnLineage" in written["facets"]
    assert written["outputFacets"]["outputStatistics"]["rowCount"] == 3


def test_a_publication_is_a_run_from_versions_to_a_version(to_file, file, tmp_path) -> None:
    refresh(to_file)
    start, complete = events(file)

    assert (start["eventType"], complete["eventType"]) == ("START", "COMPLETE")
    assert start["run"]["runId"] == complete["run"]["runId"]
    assert (complete["job"]["namespace"], complete["job"]["name"]) == ("shop", "gold.spend")
    assert complete["job"]["facets"]["sql"]["query"] == "SELECT 1"
    [read], [written] = complete["inputs"], complete["outputs"]
    lake = tmp_path / "state/lake"
    assert (read["namespace"], read["name"]) == ("file", f"{lake}/silver/orders")
    assert read["facets"]["version"]["datasetVersion"] == "0"
    assert read["facets"]["symlinks"]["identifiers"][0]["name"] == "silver.orders"
    assert (written["namespace"], written["name"]) == ("file", f"{lake}/gold/spend")
    assert written["facets"]["version"]["datasetVersion"] == "0"
    [column] = written["facets"]["schema"]["fields"]
    assert (column["name"], column["type"], column["description"]) == ("user_id", "bigint", "who")
    assert written["outputFacets"]["outputStatistics"]["rowCount"] == 3
    assert "version" not in start["outputs"][0]["facets"]
    tags = {
        one["key"]: one["value"]
        for one in complete["run"]["facets"]["tags"]["tags"]
        if one["source"] == "TIDEMARK"
    }
    expected = {"decision": "full", "reason": "FIRST_BUILD", "tick": "t1", "verdict": "passed"}
    assert tags == expected


def test_a_failure_is_reported_with_its_error_and_a_skip_is_no_run(to_file, file) -> None:
    open_attempt(to_file, plan(SKIP), epoch=1, seconds=0.1)
    attempt = open_attempt(to_file, plan(FULL), epoch=1, seconds=0.1)
    LINEAGE.wait()
    with pytest.raises(ZeroDivisionError), timed_step(to_file, attempt, "stage"):
        raise ZeroDivisionError("by zero")
    start, fail = events(file)
    assert (start["eventType"], fail["eventType"]) == ("START", "FAIL")
    assert fail["run"]["facets"]["errorMessage"]["message"] == "stage: by zero"


def test_an_error_over_personal_data_is_reported_without_values(to_file, file) -> None:
    [column] = to_file.manifest.gold["spend"].columns
    orders = SilverEntry(
        name="orders",
        source="orders",
        sql="",
        projection="",
        columns=(column.model_copy(update={"pii": True}),),
        apply=ApplyMode.APPEND,
        file="sql/silver/orders.sql",
        fingerprint="f",
    )
    to_file.manifest.silver["orders"] = orders
    attempt = open_attempt(to_file, plan(FULL), epoch=1, seconds=0.1)
    LINEAGE.wait()
    with pytest.raises(QueryFailedError), timed_step(to_file, attempt, "stage"):
        raise QueryFailedError("spend", "[CAST_INVALID_INPUT] The value 'ann@example.org' of ...")
    [_, fail] = events(file)
    message = fail["run"]["facets"]["errorMessage"]["message"]
    assert message.endswith("[QUERY_FAILED] (CAST_INVALID_INPUT)")


@pytest.mark.parametrize(
    "transport",
    [
        {"type": "no_such_transport"},
        {"type": "file", "log_file_path": "/no/such/folder/events", "append": True},
        {"type": "http", "url": "http://127.0.0.1:9", "retry": {"total": 0}},
    ],
)
def test_a_transport_that_does_not_work_fails_nothing(context, transport, caplog) -> None:
    attempt = open_attempt(told(context, transport), plan(FULL), epoch=1, seconds=0.1)
    LINEAGE.wait()
    assert attempt.status is AttemptStatus.PLANNED
    assert "lineage events of" in caplog.text


def test_a_slow_receiver_blocks_nothing_and_no_backlog_grows(caplog) -> None:
    sender, release, sent = Sender("letters"), threading.Event(), []

    def slow() -> None:
        release.wait(30)
        sent.append("slow")

    sender.send(lambda: slow, about="first")
    sender.send(lambda: lambda: sent.append("dropped"), about="second")
    assert sent == []
    assert "letters of second are dropped" in caplog.text
    release.set()
    sender.wait()
    sender.send(lambda: lambda: sent.append("next"), about="third")
    sender.wait()
    assert sent == ["slow", "next"]


def test_an_event_contains_column_lineage(shop: Shop) -> None:
    context = shop.context
    entry = context.manifest.gold["best"]
    attempt = open_attempt(context, plan(FULL), epoch=1, seconds=0.1)
    [output] = event_of(context, replace(attempt, view=entry.name)).outputs
    assert output.facets is not None
    told = json.loads(Serde.to_json(output.facets["columnLineage"]))

    sums = context.published_at("sums")
    origin = {"namespace": "file", "name": sums}
    [column] = told["fields"]["user_id"]["inputFields"]
    assert {key: column[key] for key in origin} == origin
    assert (column["field"], column["transformations"][0]["subtype"]) == ("user_id", "IDENTITY")
    [deciding] = told["dataset"]
    assert (deciding["name"], deciding["field"]) == (sums, "total")
    assert deciding["transformations"][0]["type"] == "INDIRECT"
