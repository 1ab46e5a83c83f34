"""Mistakes in what a table says of its key that show only beside its source."""

from __future__ import annotations

from collections.abc import Sequence

from spark_jobs.errors import LakehouseError, Location


class TableKeysDifferError(LakehouseError):
    """Keys of a silver table that are not the key of the table whose changes it follows."""

    condition = "TABLE_KEYS_DIFFER"

    def __init__(
        self, subject: str, keys: Sequence[str], expected: Sequence[str], *, location: Location
    ) -> None:
        self.keys, self.expected = tuple(keys), tuple(expected)
        super().__init__(
            f"{subject}: keys {', '.join(keys)} are not the source's, {', '.join(expected)}",
            detail="Rows that share them would become one row, or an update would leave the old "
            "row.",
            hint="Leave keys out, or name the columns that the source's keys are given out as.",
            location=location,
        )
