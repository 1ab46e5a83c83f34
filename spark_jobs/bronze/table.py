"""The bronze table: a Kafka record as it was received, and when."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_jobs.graph.manifest import Column
from spark_jobs.names import BronzeColumn
from spark_jobs.storage.log import schema

COLUMNS = (
    Column(name=BronzeColumn.KEY, type="binary", description="The Kafka key as received."),
    Column(name=BronzeColumn.VALUE, type="binary", description="The Kafka value as received."),
    Column(name=BronzeColumn.HEADERS, type="array<struct<key:string,value:binary>>"),
    Column(name=BronzeColumn.TOPIC, type="string"),
    Column(name=BronzeColumn.PARTITION, type="int"),
    Column(name=BronzeColumn.OFFSET, type="bigint"),
    Column(name=BronzeColumn.TIMESTAMP, type="timestamp", description="Kafka's own timestamp."),
    Column(
        name=BronzeColumn.ARRIVED_AT,
        type="timestamp",
        description="When the batch that holds the record was read.",
    ),
    Column(name=BronzeColumn.ARRIVAL_DATE, type="date", description="UTC; the partition column."),
)


def lacking_columns(location: str) -> list[Column]:
    """The columns that a bronze table of an earlier release has not.

    Raises:
        TableMissingError: there is no table.
    """
    held = {column.name for column in schema(location)}
    return [column for column in COLUMNS if column.name not in held]


def bronze_records(kafka: DataFrame) -> DataFrame:
    """Kafka records as bronze rows; nothing is parsed."""
    arrived = sf.current_timestamp()
    received = kafka.withColumns(
        {BronzeColumn.ARRIVED_AT: arrived, BronzeColumn.ARRIVAL_DATE: sf.to_date(arrived)}
    )
    return received.select(*(str(column.name) for column in COLUMNS))
