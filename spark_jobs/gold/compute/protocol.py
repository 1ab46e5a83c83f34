"""The interface of an engine."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol, TypeVar

from spark_jobs.graph.last_step import RowStep
from spark_jobs.graph.sql import Query
from spark_jobs.planning.plan import RefreshPlan
from spark_jobs.planning.work import WorkItem
from spark_jobs.storage.rows import RowChange, Rows

# The engines' names, as the ledger has them.
SPARK, DUCKDB = "spark", "duckdb"
_T = TypeVar("_T")
# A step that was checked and runs later, in the order of the program. An engine refuses a step when
# it prepares it, so that nothing has been written then.
Prepared = Callable[[], _T]


class Engine(Protocol):
    """Registers tables, computes queries over the registered names, and returns rows to write.

    Its names are private, so every refresh may use the same ones. The rows are readable while the
    engine is open. Each method raises ``NotTranslatedError`` if this engine cannot compute the
    refresh.

    Attributes:
        name: the engine's name in the ledger.
    """

    @property
    def name(self) -> str: ...

    def table(self, name: str, location: str, version: int) -> None:
        """Register a table at a version."""

    def changes(self, name: str, location: str, *, after: int, upto: int) -> None:
        """Register the inserted (``__w`` 1) and deleted (-1) rows of versions in (after, upto]."""

    def computed(self, name: str, query: Query, *, large: bool = False) -> Prepared[None]:
        """Compute a query once and register its rows.

        Args:
            name: name to register.
            query: reads registered names.
            large: whether the result may be much larger than the change.
        """

    def same(self, name: str, other: str) -> Prepared[None]:
        """Register a relation under a second name."""

    def typed(self, query: Query, *, like: str) -> Prepared[Rows]:
        """The rows of a query with the columns and types of a registered relation."""

    def change(
        self, query: Query | None, *, view: str, published: str, step: RowStep
    ) -> Prepared[Rows]:
        """The rows to delete and to insert: the view's columns and ``__operation``.

        Args:
            query: the view's columns and ``__w``; None where no row changes.
            view: the view's name.
            published: registered name of the view's own table.
            step: the last step of the refresh.
        """

    def whole(
        self, work: RefreshPlan | WorkItem, columns: Collection[str] | None = None
    ) -> Prepared[Rows]:
        """All rows of a view at the versions of a refresh.

        Args:
            work: the refresh.
            columns: names of the columns to compute, while the published ones stay; None: all.
        """

    def difference(self, view: str, *, staged: str, published: str) -> RowChange | None:
        """The change that turns the published table into the staged one; None: rewrite the table.

        Args:
            view: the view's name.
            staged: location of the new content.
            published: location of the current content.
        """
