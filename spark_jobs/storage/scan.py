"""A few columns of a Delta table without Spark, for checks over coordinates and counts."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from spark_jobs.storage.errors import LogUnreadableError, TableMissingError
from spark_jobs.storage.lake import plain_location


def read_columns(
    location: str,
    columns: Sequence[str],
    version: int | None = None,
    *,
    where: pc.Expression | None = None,
) -> pa.Table:
    """The columns of a version, or of the newest one, in memory; of the rows that a filter keeps.

    Raises:
        TableMissingError: there is no table.
        LogUnreadableError: the log does not read.
    """
    try:
        table = DeltaTable(plain_location(location), version=version)
        return table.to_pyarrow_dataset().to_table(columns=list(columns), filter=where)
    except TableNotFoundError as error:
        raise TableMissingError(location) from error
    except DeltaError as error:
        raise LogUnreadableError(location, str(error)) from error
