"""The announcement that a column will be removed."""

from __future__ import annotations

from datetime import date

from pydantic import BaseModel, ConfigDict


class Deprecation(BaseModel):
    """The date of a column's removal, and its replacement.

    Attributes:
        day: the first day, in UTC, on which it may be removed.
        use: a column of the same view, or a text that follows "use"; None if not declared.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    day: date
    use: str | None = None

    @property
    def notice(self) -> str:
        """The announcement, after the name of the column."""
        use = f": use {self.use.rstrip('.')}" if self.use else ""
        return f"may be removed from {self.day}{use}"

    @property
    def words(self) -> str:
        """The announcement as a sentence.

        >>> Deprecation(day=date(2027, 1, 31), use="net_revenue").words
        'Deprecated, may be removed from 2027-01-31: use net_revenue.'
        """
        return f"Deprecated, {self.notice}."
