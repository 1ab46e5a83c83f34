"""Sinks over tables that delta-rs writes, to servers that are real."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_jobs.definitions.vocabulary import RedisFormat, SinkSystem
from spark_jobs.graph.manifest import SinkEntry
from spark_jobs.sinks.delivery import Delivery
from spark_jobs.sinks.target import Addresses

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("spent", pa.decimal128(12, 2))])


def rows(values: dict[int | None, str]) -> pa.Table:
    """Rows of ``SCHEMA``."""
    listed = [{"id": key, "name": name, "spent": None} for key, name in values.items()]
    return pa.Table.from_pylist(listed, SCHEMA)


@dataclass(frozen=True)
class Table:
    """A table with a change feed, made and changed without Spark."""

    location: str

    def create(self, data: pa.Table) -> None:
        configuration = {"delta.enableChangeDataFeed": "true"}
        write_deltalake(self.location, data, mode="overwrite", configuration=configuration)

    def append(self, data: pa.Table) -> None:
        write_deltalake(self.location, data, mode="append")

    def upsert(self, data: pa.Table) -> None:
        merge = self.open().merge(data, "t.id = s.id", source_alias="s", target_alias="t")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()

    def delete(self, condition: str) -> None:
        self.open().delete(condition)

    def open(self) -> DeltaTable:
        return DeltaTable(self.location)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(str(tmp_path / "lake" / "gold" / "users"))


@pytest.fixture(scope="session")
def postgres_dsn(postgres_socket: Path) -> str:
    """A database of a role that may do nothing but use it."""
    name = f"s{os.urandom(6).hex()}"
    host = str(postgres_socket)
    with psycopg.connect(host=host, user="tidemark", dbname="postgres", autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {name} LOGIN".encode())
        admin.execute(f"CREATE DATABASE {name} OWNER {name}".encode())
    return f"postgresql://{name}@/{name}?host={host}"


@pytest.fixture
def addresses(postgres_dsn: str, redis_url: str) -> Addresses:
    return Addresses(postgres=postgres_dsn, redis=redis_url)


Make = Callable[..., Delivery]


def no_spark() -> Any:
    raise AssertionError("Spark was asked for a table that delta-rs wrote")


def sink_of_users(place: str, system: SinkSystem) -> SinkEntry:
    """A sink of the table to a place of its own in a system."""
    redis = system is SinkSystem.REDIS
    return SinkEntry(
        name=f"{place}_{system}",
        table="gold.users",
        system=system,
        target=f"{place}:" if redis else f"serving.{place}",
        keys=("id",),
        columns=tuple(SCHEMA.names),
        format=RedisFormat.HASH if redis else None,
        file="sql/gold/users.sql",
    )


@pytest.fixture
def make(table: Table, addresses: Addresses, tmp_path: Path) -> Iterator[Make]:
    """Deliveries from the table to a place that nobody else has used."""
    place = f"t{os.urandom(6).hex()}"
    made: list[Delivery] = []

    def delivery(system: SinkSystem, columns: tuple[str, ...] = (), **changed: Any) -> Delivery:
        names = {"columns": columns} if columns else {}
        usual = sink_of_users(place, system).model_dump()
        sink = SinkEntry(**{**usual, **names, **changed})
        locks = tmp_path / "locks"
        made.append(Delivery(sink, table.location, lambda: addresses, locks, no_spark))
        return made[-1]

    yield delivery
    for one in made:
        one.close()
