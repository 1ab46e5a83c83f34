"""Checks suites against the tables that they are for."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from spark_jobs.definitions.suites import (
    COLUMN_ARGUMENTS,
    COLUMN_LIST_ARGUMENTS,
    SuiteDefinition,
)
from spark_jobs.errors import LakehouseError
from spark_jobs.graph.errors import SuiteWithoutTableError, UnknownColumnError
from spark_jobs.names import Layer, TableName


def check_suites(
    suites: Collection[SuiteDefinition],
    columns: Mapping[TableName, Collection[str]],
    declared: frozenset[TableName],
) -> Iterator[LakehouseError]:
    """Report suites without a table, and arguments that are not columns of the table.

    Args:
        suites: all suites.
        columns: columns of the tables that compiled; other tables are not checked.
        declared: all declared tables.
    """
    tables = sorted(str(table) for table in declared if table.layer is not Layer.BRONZE)
    for suite in suites:
        if suite.table not in declared:
            place = suite.places.value_of("name")
            yield SuiteWithoutTableError(str(suite.table), tables, location=place)
        elif suite.table in columns:
            yield from _check_columns(suite, columns[suite.table])


def _check_columns(suite: SuiteDefinition, known: Collection[str]) -> Iterator[LakehouseError]:
    for at, expectation in enumerate(suite.expectations):
        for argument, value in expectation.kwargs.items():
            if argument in COLUMN_ARGUMENTS:
                named = [value]
            elif argument in COLUMN_LIST_ARGUMENTS and isinstance(value, list):
                named = value
            else:
                continue
            for column in named:
                if isinstance(column, str) and column not in known:
                    yield UnknownColumnError(
                        f'suite "{suite.table.name}"',
                        column,
                        list(known),
                        table=str(suite.table),
                        location=suite.places.value_of("expectations", at, "kwargs", argument),
                    )
