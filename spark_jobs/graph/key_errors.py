"""Error conditions of a table's key that depend on its source."""

from __future__ import annotations

from collections.abc import Sequence

from spark_jobs.errors import SubjectError


class TableKeysDifferError(SubjectError):
    """The keys of a silver table differ from those of its source table."""

    condition = "TABLE_KEYS_DIFFER"
    keys: Sequence[str]
    expected: Sequence[str]
    primary = "{subject}: keys {keys} differ from the source's keys, {expected}"
    detail = "Rows with the same values would become one row, or an update would leave the old row."
    hint = "Remove keys, or name the output columns of the source's keys."
