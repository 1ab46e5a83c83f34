"""The columns of a bronze table: a Kafka record as received, and its arrival time."""

from __future__ import annotations

from datetime import datetime
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from spark_jobs.graph.manifest import Column as Declared
from spark_jobs.names import BronzeColumn
from spark_jobs.storage.log import schema

COLUMNS = (
    Declared(name=BronzeColumn.KEY, type="binary", description="The Kafka key as received."),
    Declared(name=BronzeColumn.VALUE, type="binary", description="The Kafka value as received."),
    Declared(name=BronzeColumn.HEADERS, type="array<struct<key:string,value:binary>>"),
    Declared(name=BronzeColumn.TOPIC, type="string"),
    Declared(name=BronzeColumn.PARTITION, type="int"),
    Declared(name=BronzeColumn.OFFSET, type="bigint"),
    Declared(
        name=BronzeColumn.TIMESTAMP,
        type="timestamp",
        description="Kafka's own timestamp; NULL outside of the years 1 to 9999.",
    ),
    Declared(
        name=BronzeColumn.ARRIVED_AT,
        type="timestamp",
        description="When the batch that holds the record was read.",
    ),
    Declared(name=BronzeColumn.ARRIVAL_DATE, type="date", description="UTC; the partition column."),
)
_READABLE = (
    f"{BronzeColumn.TIMESTAMP} BETWEEN TIMESTAMP '0001-01-01 00:00:00Z' "
    "AND TIMESTAMP '9999-12-31 23:59:59.999999Z'"
)
_ARRIVAL = (BronzeColumn.ARRIVED_AT, BronzeColumn.ARRIVAL_DATE)


def lacking_columns(location: str) -> list[Declared]:
    """Columns that a bronze table of an older release lacks.

    Raises:
        TableMissingError: the table does not exist.
    """
    held = {column.name for column in schema(location)}
    return [column for column in COLUMNS if column.name not in held]


def received(kafka: DataFrame) -> DataFrame:
    """Kafka records with ``COLUMNS`` except for the arrival; nothing is parsed.

    A producer that sends microseconds has records of the year 58000. Python and other readers could
    not read a table with such a time, so it is NULL.
    """
    readable = sf.when(sf.expr(_READABLE), sf.col(BronzeColumn.TIMESTAMP))
    kept = kafka.select(*(one.name for one in COLUMNS if one.name not in _ARRIVAL))
    return kept.withColumn(BronzeColumn.TIMESTAMP, readable)


def arrived(records: DataFrame, at: datetime) -> DataFrame:
    """Bronze rows with all ``COLUMNS``, from the result of ``received``."""
    moment = sf.lit(at)
    return records.withColumns(
        {BronzeColumn.ARRIVED_AT: moment, BronzeColumn.ARRIVAL_DATE: sf.to_date(moment)}
    )


def arrived_here(records: pa.Table, at: datetime) -> pa.Table:
    """Bronze rows with all ``COLUMNS`` as Arrow data, from the result of ``received``."""
    for name, value in (
        (BronzeColumn.ARRIVED_AT, pa.scalar(at, pa.timestamp("us", "UTC"))),
        (BronzeColumn.ARRIVAL_DATE, pa.scalar(at.date(), pa.date32())),
    ):
        records = records.append_column(str(name), pa.repeat(value, records.num_rows))
    return records


def length() -> Column:
    """The size of a record in bytes."""
    header = "octet_length(h.key) + nvl(octet_length(h.value), 0)"
    headers = f"aggregate(headers, 0, (n, h) -> n + {header})"
    parts = ("octet_length(key)", "octet_length(value)", headers)
    return reduce(Column.__add__, (sf.coalesce(sf.expr(one), sf.lit(0)) for one in parts))
