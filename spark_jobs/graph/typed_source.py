"""The columns of a source that a SELECT can use, and checks of header expressions."""

from __future__ import annotations

from collections.abc import Mapping

from spark_jobs.definitions.vocabulary import SourceFormat
from spark_jobs.errors import LakehouseError, Location
from spark_jobs.graph.argument_checks import check_arguments
from spark_jobs.graph.errors import SqlSyntaxError, UnknownColumnError
from spark_jobs.graph.manifest import SourceEntry
from spark_jobs.graph.parsing import SqlText, parse_select
from spark_jobs.graph.resolve import Resolved, resolve
from spark_jobs.names import Layer, SilverColumn, TableName

# The connector's operation: c, r, u or d.
OPERATION_COLUMN = "__op"
# Kafka's timestamp of the record.
TIMESTAMP_COLUMN = "__timestamp"

_OF_EVERY_RECORD = {
    SilverColumn.PARTITION.value: "int",
    SilverColumn.OFFSET.value: "bigint",
    TIMESTAMP_COLUMN: "timestamp",
    SilverColumn.ARRIVED_AT.value: "timestamp",
}


def typed_columns(source: SourceEntry) -> dict[str, str]:
    """Spark SQL types of all columns that a SELECT over the source may use, by name."""
    columns = {column.name: column.type for column in source.columns}
    if not source.format.streamed:
        return columns
    if source.format is SourceFormat.DEBEZIUM:
        columns |= {OPERATION_COLUMN: "string", SilverColumn.SEQUENCE.value: "string"}
    return columns | _OF_EVERY_RECORD


def header_expression(
    written: str, key: str, columns: Mapping[str, str], place: Location, subject: str
) -> Resolved:
    """Check an expression of a header; its locations are that of the key's value.

    Args:
        written: the expression.
        key: the header's key.
        columns: Spark SQL types of the columns that it may read, by name.
        place: of the key's value.
        subject: what the header declares, for messages.
    """
    table = TableName(Layer.BRONZE, "source")
    text = SqlText(place.file, f"SELECT {written} AS value FROM {table}")
    try:
        tree = parse_select(text)
        for wrong in check_arguments(tree, text):
            raise wrong
        resolved = resolve(tree, {table: columns}, text, f"{subject}: {key}")
    except LakehouseError as error:
        cause = error.primary.partition(": ")[2] or error.primary
        problem: LakehouseError = SqlSyntaxError(f'in "{key}", {cause}', location=place)
        return Resolved(None, (problem,))  # type: ignore[arg-type]
    problems = tuple(_moved(one, place, subject, key, columns) for one in resolved.problems)
    return Resolved(resolved.tree, problems)


def _moved(
    problem: LakehouseError, place: Location, subject: str, key: str, columns: Mapping[str, str]
) -> LakehouseError:
    if isinstance(problem, UnknownColumnError):
        return UnknownColumnError(
            f"{subject}: {key}", problem.column, list(columns), location=place
        )
    return SqlSyntaxError(problem.primary, location=place)
