"""Conditions of silver that a user meets."""

from __future__ import annotations

from spark_jobs.errors import LakehouseError


class SourceDatabaseError(LakehouseError):
    """The database that changes come from does not answer, or refuses the query."""

    condition = "SOURCE_DATABASE"

    def __init__(self, silver: str, table: str, cause: str) -> None:
        self.silver = silver
        self.table = table
        super().__init__(
            f'silver table "{silver}" cannot be compared with "{table}" of the source database',
            detail=f"{cause.strip().splitlines()[0]}.",
            hint="Check that the database runs (make status) and that the role may read the "
            "table; the setting source_database names the database.",
        )
