"""Checks and rewrites statements of SQL endpoint clients."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from spark_jobs.errors import LakehouseError
from spark_jobs.graph.query import query_tables
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
from spark_jobs.serving.sql.grants import TableNotGrantedError, granted_tables
from spark_jobs.serving.sql.session import QuerySession
from spark_jobs.stack.endpoint_users import (
    ANALYST,
    RoleUnknownError,
    UserUnknownError,
    read_users,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.endpoint_sections import EndpointRole
    from spark_jobs.graph.manifest import Manifest
    from spark_jobs.serving.sql.listing import ListedTable
    from spark_jobs.serving.sql.query import PinnedQuery
    from spark_jobs.settings import Settings

logger = logging.getLogger(__name__)

SERVED = frozenset({Layer.SILVER, Layer.GOLD})
SCHEMAS = (*sorted(SERVED), OPS_SCHEMA)
# Spark's schema of global temporary views.
SHARED_VIEWS = "global_temp"


def served_layers(settings: Settings) -> frozenset[Layer]:
    """The layers that clients can query.

    If the server has an account of its own, it can read only layers that every account can.
    """
    return SERVED & {*settings.security.readable} if settings.endpoint.account else SERVED


@dataclass(frozen=True, kw_only=True)
class EndpointSession(QuerySession):
    """Queries of all clients over silver, gold and ops, by the current manifest.

    Attributes:
        driver: the session whose catalog the clients' sessions share.
        compiled: returns the current manifest.
        user: who asks.
        role: what the user may query; None: all that is served.
    """

    limit: int = 0
    seconds: float = 0
    layers: frozenset[Layer] = SERVED
    driver: SparkSession
    compiled: Callable[[], Manifest]
    user: str = ""
    role: EndpointRole | None = None

    @cached_property
    def spark(self) -> SparkSession:
        return self.driver

    @property
    def manifest(self) -> Manifest:
        return self.compiled()

    def listed(self) -> dict[str, ListedTable]:
        """The listed tables by name; one whose types only Spark knows is listed once it exists."""
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
        """The SQL to run for a statement: tables without a version are read at their newest.

        Returns:
            the SQL, and the policy that Spark enforces; "" if it reads no table.

        Raises:
            LakehouseError: the statement is refused.
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

    def of(self, user: str) -> EndpointSession:
        """The session of one user, with what the user's role may query now.

        Raises:
            UserUnknownError: the user was removed after the login.
            RoleUnknownError: the settings no longer declare the user's role.
        """
        if user == ANALYST:
            return replace(self, user=user)
        users, roles = read_users(self.settings), self.settings.endpoint.roles
        if user not in users:
            raise UserUnknownError(user, tuple(sorted(users)))
        role = users[user].role
        if role not in roles:
            raise RoleUnknownError(role, tuple(sorted(roles)))
        return replace(self, user=user, role=roles[role])

    def tables(self) -> list[tuple[str, str]]:
        """The tables that the user may query, each as name in SQL and description."""
        found = super().tables()
        if self.role is None:
            return found
        granted = granted_tables(self.role, self.manifest)
        return [(name, description) for name, description in found if name in granted]

    def _query(self, text: str, schema: str) -> PinnedQuery:
        from spark_jobs.serving.sql.query import view_of

        if schema in SCHEMAS:
            text = qualified(text, schema)
        if self.role is not None:
            served = [name for name, _ in super().tables()]
            granted = granted_tables(self.role, self.manifest)
            refused = query_tables(text, known=served).keys() - granted
            if refused:
                raise TableNotGrantedError(self.user, tuple(sorted(refused)))
        query = self.pinned(text, views=SHARED_VIEWS)
        if query.made:
            for name, frame in self.ops(query.made).items():
                # Earlier queries with these names have read their rows, or read newer ones.
                frame.createOrReplaceGlobalTempView(view_of(name))
        return query


def judge(session: EndpointSession, told: MutableMapping[str, str]) -> None:
    """Add the SQL to run, or the refusal, to the statement's properties from Spark."""
    statement = statement_of(told)
    try:
        told["sql"], told["policy"] = session.of(told["user"]).sql(statement)
    except LakehouseError as error:
        logger.info("statement refused kind=%s condition=%s", statement.kind, error.condition)
        told["refusal"] = error.render()
    except Exception:
        # Otherwise Java would show the client a stack trace of this program.
        logger.exception("statement not checked kind=%s", statement.kind)
        told["refusal"] = "the endpoint failed to look into this statement; its log says why"


def statement_of(told: Mapping[str, str]) -> Statement:
    """The statement from its properties in Spark; lists are separated by line ends.

    Args:
        told: ``kind``, ``text``, ``schema``, ``changed``, ``tables`` and ``schemas``.
    """
    return Statement(
        kind=told["kind"],
        text=told["text"],
        schema=told["schema"],
        changed=tuple(told["changed"].splitlines()),
        tables=tuple(told["tables"].splitlines()),
        # SHOW SCHEMAS names the empty one, which holds all others.
        schemas=tuple(filter(None, told["schemas"].splitlines())),
    )
