"""What a refresh asks of an engine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol, TypeVar

from spark_jobs.graph.sql import Query
from spark_jobs.planning.plan import RefreshPlan
from spark_jobs.planning.work import WorkItem
from spark_jobs.storage.rows import RowChange, Rows

# The engines' names, as the ledger has them.
SPARK, DUCKDB = "spark", "duckdb"
_T = TypeVar("_T")
# Something that was checked and is to be done later, in the order of the program. An engine that
# cannot do it says so before: whatever is refused is refused before anything is written.
Prepared = Callable[[], _T]


class Engine(Protocol):
    """Names tables, computes queries over the names, and gives rows to the writer.

    All rows that it gives are to be read while it is open. Each method raises
    ``NotTranslatedError`` where another engine is to compute the refresh.

    Attributes:
        name: as the ledger has it.
        own_names: whether its names are seen by nobody else, so that those of any refresh will do.
    """

    @property
    def name(self) -> str: ...
    @property
    def own_names(self) -> bool: ...

    def table(self, name: str, location: str, version: int) -> None:
        """Name a version of a table."""

    def changes(self, name: str, location: str, *, after: int, upto: int) -> None:
        """Name the rows that came (``__w`` 1) and went (-1) after one version, up to another."""

    def computed(self, name: str, query: Query, *, large: bool = False) -> Prepared[None]:
        """Compute a query once, and name its rows.

        Args:
            name: of the rows.
            query: over names.
            large: whether there may be far more rows than have changed.
        """

    def same(self, name: str, other: str) -> Prepared[None]:
        """Give a second name to rows."""

    def typed(self, query: Query, *, like: str) -> Prepared[Rows]:
        """The rows of a query in the columns and types of those that have a name."""

    def change(
        self, query: Query | None, *, view: str, published: str, key: Sequence[str]
    ) -> Prepared[Rows]:
        """The rows to delete and to insert: those of the view, and ``__operation``.

        Args:
            query: the view's columns and ``__w``; None where no row changes.
            view: the view's name.
            published: names the view's own table.
            key: columns that tell its rows apart; with none all columns do.
        """

    def whole(
        self, work: RefreshPlan | WorkItem, columns: Collection[str] | None = None
    ) -> Prepared[Rows]:
        """All rows of a view at the versions of a refresh.

        Args:
            work: the refresh.
            columns: those to compute, beside published ones that stay; None: all.
        """

    def difference(self, view: str, *, staged: str, published: str) -> RowChange | None:
        """The change that makes one table another; None where that is to be written as a whole.

        Args:
            view: the view's name.
            staged: where the rows lie as they are to be.
            published: where they lie as they are.
        """
