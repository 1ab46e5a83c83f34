"""The steps of a delivery to a target in memory: changed declarations, columns and values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from deltalake.schema import Field, PrimitiveType

from spark_jobs.definitions.vocabulary import KafkaFormat, SinkSystem
from spark_jobs.sinks import delivery
from spark_jobs.sinks.changes import Change
from spark_jobs.sinks.delivery import Delivery
from spark_jobs.sinks.errors import SinkColumnsMissingError, SinkGapError, SinkValueError
from spark_jobs.sinks.redis import _watermark
from spark_jobs.sinks.rows import RowCodec
from spark_jobs.sinks.target import Addresses, Watermark
from spark_jobs.sinks.verify import verify_sink
from tests.unit.sinks.conftest import Table, no_spark, rows, sink_of_users

Make = Callable[..., Delivery]


@dataclass
class Server:
    """A system with the rows of each target, and the parts of each sink's watermark."""

    rows: dict[str, dict[str, str]] = field(default_factory=dict)
    marks: dict[str, Any] = field(default_factory=dict)


@dataclass
class InMemory:
    """A target on the server; like Redis it is never missing."""

    sink: Any
    codec: RowCodec
    server: Server

    @property
    def _rows(self) -> dict[str, str]:
        return self.server.rows.setdefault(self.sink.target, {})

    def watermark(self) -> Watermark | None:
        found = self.server.marks.get(self.sink.name)
        return None if found is None else Watermark.stored(**found)

    def occupied(self) -> bool:
        return bool(self._rows)

    def missing(self) -> bool:
        return False

    def prepare(self) -> None:
        pass

    def rows(self) -> Iterator[tuple[str, str]]:
        yield from [*self._rows.items()]

    def deliver(
        self, changes: Iterable[Change], *, before: Watermark | None, after: Watermark
    ) -> int:
        assert self.watermark() == before
        for one in (all_changes := [*changes]):
            self._rows.pop(one.key, None)
            if one.after is not None:
                self._rows[one.key] = one.after
        self.server.marks[self.sink.name] = after.parts
        return len(all_changes)

    def close(self) -> None:
        pass


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def sink(table: Table, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """The sink ``users`` with some other words in its declaration."""
    monkeypatch.setattr(
        delivery, "open_target", lambda entry, codec, _: InMemory(entry, codec, server)
    )

    def made(**changed: Any) -> Delivery:
        entry = sink_of_users("users", SinkSystem.KAFKA).model_copy(update=changed)
        return Delivery(entry, table.location, Addresses, tmp_path / "locks", no_spark)

    return made


@pytest.mark.parametrize(
    "changed", [{"keys": ("id", "name")}, {"format": KafkaFormat.DEBEZIUM}], ids=["keys", "format"]
)
def test_rows_in_another_form_are_a_gap(table: Table, sink: Make, changed: dict) -> None:
    table.create(rows({1: "Ann", 2: "Bob"}))
    sink().catch_up()
    table.delete("id = 1")
    other = sink(**changed)
    with pytest.raises(SinkGapError, match="format or keys"):
        other.step()
    with pytest.raises(SinkGapError, match="format or keys"):
        verify_sink(other)
    other.rebuild()
    assert verify_sink(other).passed
    assert other.step().changes == 0
    table.delete("id = 2")
    assert other.step().changes == 1
    assert verify_sink(other).rows == 0


def test_another_target_gets_all_rows(table: Table, sink: Make, server: Server) -> None:
    table.create(rows({1: "Ann", 2: "Bob"}))
    sink().catch_up()
    table.upsert(rows({3: "Cat"}))
    other = sink(target="serving.elsewhere")
    done = other.step()
    assert (done.built, done.changes, done.watermark.epoch) == (True, 3, 2)
    assert len(server.rows["serving.elsewhere"]) == 3

    server.rows["serving.taken"] = {'{"id":9}': "{}"}
    with pytest.raises(SinkGapError, match="target"):
        sink(target="serving.taken").step()
    assert server.rows["serving.taken"] == {'{"id":9}': "{}"}


def test_a_watermark_of_an_older_release_continues(
    table: Table, sink: Make, server: Server
) -> None:
    table.create(rows({1: "Ann"}))
    first = sink()
    first.catch_up()
    first.close()
    [mark] = server.marks.values()
    mark["table_id"] = mark["table_id"].partition("/")[0]
    table.upsert(rows({2: "Bob"}))
    assert not sink().step().built
    with pytest.raises(SinkGapError, match="keys"):
        sink(keys=("name",)).step()


def test_a_column_that_came_long_after_the_last_delivery_is_a_gap(
    table: Table, sink: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "VERSIONS_AT_ONCE", 2)
    table.create(rows({1: "Ann"}))
    sink().catch_up()
    for number in range(2, 5):
        table.append(rows({number: "Bob"}))
    table.open().alter.add_columns([Field("city", PrimitiveType("string"))])
    wider = rows({5: "Eve"}).append_column("city", pa.array(["Ulm"]))
    write_deltalake(table.location, wider, mode="append")
    other = sink(columns=("id", "name", "spent", "city"))
    with pytest.raises(SinkGapError, match="other columns"):
        other.step()
    with pytest.raises(SinkGapError, match="other columns"):
        verify_sink(other)
    assert other.rebuild().changes == 5
    assert verify_sink(other).passed


def test_a_sink_waits_for_a_column_that_is_not_written_yet(table: Table, sink: Make) -> None:
    table.create(rows({1: "Ann"}))
    for act in (Delivery.step, Delivery.rebuild, verify_sink):
        with pytest.raises(SinkColumnsMissingError) as caught:
            act(sink(columns=("id", "city")))
        assert caught.value.listed == "city"


def test_a_time_that_no_text_holds_waits_for_a_person(table: Table, sink: Make) -> None:
    late = pa.array([3_000_000], pa.int32()).cast(pa.date32())
    days = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), late)
    table.create(pa.table({"id": [1], "days": days}))
    with pytest.raises(SinkValueError, match="delivery is refused") as caught:
        sink(columns=("id", "days")).step()
    assert "9999" in caught.value.cause


def test_every_system_stores_the_form() -> None:
    mark = Watermark("a", 3, 1, form="f")
    stored = {name.encode(): str(value).encode() for name, value in mark.parts.items() if value}
    found = _watermark(stored)
    assert found is not None
    assert (found, found.form) == (mark, "f")
    assert Watermark.stored("a", 3, 1).form == ""
