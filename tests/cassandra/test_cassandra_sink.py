"""What is Cassandra's own: types, keys, the times of writes, and the server on demand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cassandra import AuthenticationFailed
from cassandra.cluster import NoHostAvailable
from typer.testing import CliRunner

from spark_jobs.access.cassandra import cassandra_cluster
from spark_jobs.cli.main import app
from spark_jobs.definitions.vocabulary import SinkSystem
from spark_jobs.sinks import cassandra as sinks
from spark_jobs.sinks.errors import SinkGapError, SinkMovedError, SinkNotBuiltError, SinkValueError
from spark_jobs.sinks.target import Addresses
from spark_jobs.sinks.verify import verify_sink
from spark_jobs.stack.cassandra_server import url
from tests.e2e.running import RunningStack
from tests.golden.declaration_cases import RIGHT, write_project
from tests.unit.sinks.conftest import SCHEMA, Make, Table, rows
from tests.unit.sinks.test_delivery import CutOff


def asked(addresses: Addresses, statement: str) -> list[dict[str, Any]]:
    with cassandra_cluster(addresses.cassandra) as cluster:
        return list(cluster.connect().execute(statement))


def test_the_table_has_the_right_types(table: Table, make: Make, addresses: Addresses) -> None:
    table.create(rows({1: "Ann"}))
    sink = make(SinkSystem.CASSANDRA, keys=("id", "name"))
    sink.catch_up()
    name = sink.sink.target.removeprefix("serving.")
    found = asked(
        addresses,
        "SELECT column_name, type, kind FROM system_schema.columns "
        f"WHERE keyspace_name = 'serving' AND table_name = '{name}'",
    )
    assert {one["column_name"]: (one["type"], one["kind"]) for one in found} == {
        "id": ("bigint", "partition_key"),
        "name": ("text", "partition_key"),
        "spent": ("decimal", "regular"),
    }


def test_a_key_that_cassandra_does_not_have_is_refused_and_can_be_fixed(
    table: Table, make: Make
) -> None:
    table.create(rows({1: "Ann"}))
    sink = make(SinkSystem.CASSANDRA)
    sink.catch_up()
    table.append(rows({None: "nobody", 2: "Bob"}))
    with pytest.raises(SinkValueError, match="is NULL or empty"):
        sink.step()
    assert verify_sink(sink).rows == 1
    table.delete("id IS NULL")
    assert sink.step().changes == 1
    assert verify_sink(sink).rows == 2


def test_a_delivery_that_was_cut_off_is_made_again_as_it_was(
    table: Table, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.create(rows({1: "Ann", 2: "Bob"}))
    sink = make(SinkSystem.CASSANDRA)
    first = sink.catch_up().watermark
    table.upsert(rows({1: "Anna"}))
    with monkeypatch.context() as patch:
        patch.setattr(sinks, "failpoint", CutOff(after=0))
        with pytest.raises(ConnectionAbortedError):
            sink.step()
    with pytest.raises(SinkNotBuiltError):
        verify_sink(sink)
    # Taken together with this, the change that was written is none.
    table.upsert(rows({1: "Ann"}))
    again = sink.step()
    assert (again.watermark.version, again.behind) == (first.version + 1, 1)
    assert sink.catch_up().watermark.epoch == first.epoch
    assert verify_sink(sink).passed


def test_what_is_written_late_changes_nothing(
    table: Table, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.create(rows({1: "Ann", 2: "Bob"}))
    late, other = make(SinkSystem.CASSANDRA), make(SinkSystem.CASSANDRA)
    late.catch_up()
    table.upsert(rows({1: "Anna", 3: "Cat"}))
    table.delete("id = 2")
    newest = late._newest()
    target = late.target(newest)
    mark = target.watermark()
    changes = [*net_of(late, mark.version, newest.version)]

    def after_the_other(write: Callable[..., Any]) -> Callable[..., Any]:
        def writing(*arguments: Any, **named: Any) -> Any:
            monkeypatch.setattr(sinks, "execute_concurrent", write)
            other.catch_up()
            table.upsert(rows({1: "Ann", 2: "Bill"}))
            table.delete("id = 3")
            other.catch_up()
            return write(*arguments, **named)

        return writing

    monkeypatch.setattr(sinks, "execute_concurrent", after_the_other(sinks.execute_concurrent))
    with pytest.raises(SinkMovedError):
        target.deliver(changes, before=mark, after=type(mark)(mark.table_id, newest.version, 1))
    found = verify_sink(other)
    assert (found.passed, found.rows) == (True, 2)


def net_of(delivery, after: int, upto: int):
    from spark_jobs.sinks.changes import net

    return net(
        delivery.sink.name, delivery._moves(delivery.target(delivery._newest()), after, upto)
    )


def test_very_many_rows_are_written(
    table: Table, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sinks, "ROWS_AT_ONCE", 7)
    monkeypatch.setattr(sinks, "FETCHED_ROWS", 3)
    table.create(rows({at: str(at) for at in range(20)}))
    sink = make(SinkSystem.CASSANDRA)
    assert sink.catch_up().changes == 20
    table.upsert(rows(dict.fromkeys(range(15), "x")))
    assert sink.catch_up().changes == 15
    assert verify_sink(sink).rows == 20


def test_a_table_that_is_gone_is_a_gap(table: Table, make: Make, addresses: Addresses) -> None:
    table.create(rows({1: "Ann"}))
    sink = make(SinkSystem.CASSANDRA)
    sink.catch_up()
    asked(addresses, f"DROP TABLE {sink.sink.target}")
    table.upsert(rows({2: "Bob"}))
    with pytest.raises(SinkGapError, match="is gone"):
        sink.step()
    assert sink.rebuild().changes == 2
    assert verify_sink(sink).passed


def test_another_type_of_a_column_comes_with_a_rebuild(
    table: Table, make: Make, tmp_path: Path
) -> None:
    table.create(rows({1: "Ann"}))
    make(SinkSystem.CASSANDRA).catch_up()
    Path(table.location).rename(tmp_path / "aside")
    table.create(rows({1: "Ann"}).set_column(2, "spent", pa.array([1.5])))
    sink = make(SinkSystem.CASSANDRA)
    assert sink.rebuild().changes == 1
    assert verify_sink(sink).passed


def test_the_verbs_of_a_sink(
    stack: RunningStack, addresses: Addresses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("TIDEMARK_SINKS__CASSANDRA", addresses.cassandra)
    declared = "sinks:\n  - cassandra: {table: shop.spend}\nevery:"
    text = RIGHT["sql/gold/spend.sql"].replace("every:", declared)
    project = write_project(tmp_path / "project", {"sql/gold/spend.sql": text})

    def call(*words: str) -> Any:
        arguments = ["--project", str(project), "sink", *words]
        return CliRunner().invoke(app, arguments, catch_exceptions=False)

    table = Table(str(tmp_path / "state/lake/gold/spend"))
    table.create(pa.table({"user_id": [1, 2], "spend": ["1.50", None]}))
    assert "built from version 0, 2 changes" in call("run").stdout
    [status] = json.loads(call("status", "--json").stdout)
    assert (status["sink"], status["versions_behind"]) == ("spend_cassandra", 0)
    assert call("verify").exit_code == 0
    asked(addresses, "UPDATE shop.spend SET spend = '99' WHERE user_id = 1")
    assert call("verify").exit_code == 1
    assert "1 change\n" in call("rebuild", "spend_cassandra").stdout
    [found] = json.loads(call("verify", "--json").stdout)
    assert (found["finding"], found["rows"], found["watermark"]["epoch"]) == ("EQUAL", 2, 2)


def test_the_stacks_server_keeps_its_rows_and_asks_for_its_password(
    stack: RunningStack, table: Table, make: Make
) -> None:
    table.create(rows({1: "Ann"}))
    sink = make(SinkSystem.CASSANDRA)
    sink.catch_up()
    with (
        cassandra_cluster(url(stack.settings, "cassandra")) as stranger,
        pytest.raises(NoHostAvailable) as refused,
    ):
        stranger.connect()
    assert isinstance(next(iter(refused.value.errors.values())), AuthenticationFailed)
    pid = stack.part("cassandra").pid
    # A write that was answered is on the disk a second later.
    stack.stop("cassandra")
    stack.up("cassandra")
    assert stack.part("cassandra").pid != pid
    sink.close()
    assert verify_sink(sink).rows == 1
    assert SCHEMA.names == list(sink.sink.columns)
