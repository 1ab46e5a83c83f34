"""What becomes of a statement that a client of the SQL endpoint sends."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from spark_jobs.errors import LakehouseError
from spark_jobs.graph.statements import (
    EXPLAIN,
    LOOKS,
    SET,
    Statement,
    check_look,
    check_settings,
    qualified,
    split_explain,
)
from spark_jobs.names import OPS_SCHEMA, Layer
from spark_jobs.serving.sql.session import QuerySession

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.graph.manifest import Manifest
    from spark_jobs.serving.sql.listing import ListedTable
    from spark_jobs.serving.sql.query import PinnedQuery
    from spark_jobs.settings import Settings

logger = logging.getLogger(__name__)

SERVED = frozenset({Layer.SILVER, Layer.GOLD})
SCHEMAS = (*sorted(SERVED), OPS_SCHEMA)
# Spark's schema of views that all sessions share.
SHARED_VIEWS = "global_temp"


def served_layers(settings: Settings) -> frozenset[Layer]:
    """The layers whose tables clients can name.

    With an account of its own, the server can read no others than those that every account can.
    """
    return SERVED & {*settings.security.readable} if settings.endpoint.account else SERVED


@dataclass(frozen=True, kw_only=True)
class EndpointSession(QuerySession):
    """The queries of all clients, over silver, gold and ops, as the compiled project has them.

    Attributes:
        driver: the session whose catalog the clients' sessions share.
        compiled: tells the manifest as it is now.
    """

    limit: int = 0
    seconds: float = 0
    layers: frozenset[Layer] = SERVED
    driver: SparkSession
    compiled: Callable[[], Manifest]

    @cached_property
    def spark(self) -> SparkSession:
        return self.driver

    @property
    def manifest(self) -> Manifest:
        return self.compiled()

    def listed(self) -> dict[str, ListedTable]:
        """What clients are shown; a table of which only Spark knows the types, once it is there."""
        from spark_jobs.serving.sql.listing import ListedTable

        found = {
            name: ListedTable(description, tuple(self.columns(name)))
            for name, description in self.tables()
        }
        return {
            name: table
            for name, table in found.items()
            if table.columns and all(one.type for one in table.columns)
        }

    def sql(self, statement: Statement) -> tuple[str, str]:
        """What runs for a statement: every table at its newest version, if at no other.

        Returns:
            the SQL, and the policy that Spark holds it to; "" for what reads no table.

        Raises:
            LakehouseError: the statement is refused, and why.
        """
        check_settings(statement)
        if statement.kind == SET:
            return statement.text, ""
        if statement.kind in LOOKS:
            names = [name for name, _ in self.tables()]
            check_look(statement, tables=names, schemas=SCHEMAS)
            return statement.text, ""
        words, query = "", statement.text
        if statement.kind == EXPLAIN:
            words, query = split_explain(query)
        pinned = self._query(query, statement.schema)
        return words + pinned.sql, pinned.policy.text()

    def _query(self, text: str, schema: str) -> PinnedQuery:
        from spark_jobs.serving.sql.query import view_of

        if schema in SCHEMAS:
            text = qualified(text, schema)
        query = self.pinned(text, views=SHARED_VIEWS)
        if query.made:
            for name, frame in self.ops(query.made).items():
                # A query that was told these names before has read its rows, or reads newer ones.
                frame.createOrReplaceGlobalTempView(view_of(name))
        return query


def judge(session: EndpointSession, told: MutableMapping[str, str]) -> None:
    """Put into what Spark tells of a statement what runs for it, or why nothing does."""
    statement = statement_of(told)
    try:
        told["sql"], told["policy"] = session.sql(statement)
    except LakehouseError as error:
        logger.info("statement refused kind=%s condition=%s", statement.kind, error.condition)
        told["refusal"] = error.render()
    except Exception:
        # Java would show the client where in this program it happened.
        logger.exception("statement not checked kind=%s", statement.kind)
        told["refusal"] = "the endpoint failed to look into this statement; its log says why"


def statement_of(told: Mapping[str, str]) -> Statement:
    """What Spark tells of a statement; lists come as lines."""
    return Statement(
        kind=told["kind"],
        text=told["text"],
        schema=told["schema"],
        changed=tuple(told["changed"].splitlines()),
        tables=tuple(told["tables"].splitlines()),
        schemas=tuple(told["schemas"].splitlines()),
    )
