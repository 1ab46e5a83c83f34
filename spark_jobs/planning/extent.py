"""How much a command may delete without a person's confirmation."""

from __future__ import annotations

from dataclasses import dataclass

from spark_jobs.planning.errors import DeletionTooLargeError

MOST_ROWS = 100
MOST_SHARE = 0.05


@dataclass(frozen=True)
class Extent:
    """What a command would delete.

    Attributes:
        place: what it is part of, for instance a table.
        rows: number of rows or records to delete.
        among: number of all rows or records.
    """

    place: str
    rows: int
    among: int

    @property
    def large(self) -> bool:
        """Whether it is more than 100 rows and more than 5 %.

        >>> [Extent("t", rows, 10_000).large for rows in (100, 500, 501)]
        [False, False, True]
        >>> Extent("t", 100, 100).large
        False
        """
        return self.rows > max(MOST_ROWS, MOST_SHARE * self.among)

    def check(self, *, let_pass: bool) -> None:
        """Fail if it is large and not confirmed.

        Raises:
            DeletionTooLargeError: it is large, and ``let_pass`` is not set.
        """
        if self.large and not let_pass:
            raise DeletionTooLargeError(self.place, self.rows, self.among)
