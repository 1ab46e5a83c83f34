"""How much a command may take away before a person says that so much is meant."""

from __future__ import annotations

from dataclasses import dataclass

from spark_jobs.planning.errors import DeletionTooLargeError

MOST_ROWS = 100
MOST_SHARE = 0.05


@dataclass(frozen=True)
class Extent:
    """What a command would take away.

    Attributes:
        place: of what, for instance a table.
        rows: how many rows or records.
        among: how many there are.
    """

    place: str
    rows: int
    among: int

    @property
    def large(self) -> bool:
        """Whether that is more than 100 rows and more than 5 % of them.

        >>> [Extent("t", rows, 10_000).large for rows in (100, 500, 501)]
        [False, False, True]
        >>> Extent("t", 100, 100).large
        False
        """
        return self.rows > max(MOST_ROWS, MOST_SHARE * self.among)

    def check(self, *, let_pass: bool) -> None:
        """Refuse what is large, unless a person lets it pass.

        Raises:
            DeletionTooLargeError: it is large and nobody does.
        """
        if self.large and not let_pass:
            raise DeletionTooLargeError(self.place, self.rows, self.among)
