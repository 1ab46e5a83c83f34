"""Checks that each column of a contract has a type."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from spark_jobs.definitions.marked import Places
from spark_jobs.definitions.models import GoldHeader
from spark_jobs.errors import SubjectError
from spark_jobs.graph.manifest import Column


class ContractTypeUnknownError(SubjectError):
    """A column of a contract whose type only Spark knows."""

    condition = "CONTRACT_TYPE_UNKNOWN"
    column: str
    primary = '{subject}: the contract promises a type of "{column}", which the SQL does not say'
    hint = "Say it: CAST(… AS DECIMAL(12, 2)) AS {column}, with the type that you promise."


def check_typed(
    header: GoldHeader, columns: Collection[Column], places: Places, subject: str
) -> Iterator[ContractTypeUnknownError]:
    """Report columns of a contract whose type is unknown."""
    if header.contract is not None:
        for column in columns:
            if not column.type:
                place = places.of("contract")
                yield ContractTypeUnknownError(subject, column.name, location=place)
