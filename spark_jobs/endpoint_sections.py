"""The section of the SQL endpoint: its address, roles and limits; see ``sections``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

RoleName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,62}$")]


class ServedSchema(StrEnum):
    """The schemas of the SQL endpoint."""

    SILVER = "silver"
    GOLD = "gold"
    OPS = "ops"


class EndpointRole(BaseModel):
    """The tables that users of a role may query: those that any of the keys names."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # All tables of these schemas.
    schemas: tuple[ServedSchema, ...] = ()
    # Silver and gold tables with one of these tags.
    tags: tuple[str, ...] = ()
    # Single tables, for instance gold.user_revenue.
    tables: tuple[Annotated[str, Field(pattern=r"^(silver|gold|ops)\.[a-z][a-z0-9_]*$")], ...] = ()


class EndpointSettings(BaseModel):
    """Address, roles and limits of the SQL endpoint."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # An address other than loopback requires ``security.enabled``: passwords would be sent in clear
    # text.
    host: str = "127.0.0.1"
    # The operating system account that runs queries. It reads only the layers in
    # ``security.readable``. The stack must be started by root, or with permission to switch
    # accounts. Empty: the account of the stack.
    account: str = Field(default="", pattern=r"^([a-z_][a-z0-9_-]*)?$")
    # Roles of users that `tidemark endpoint user add` creates, by name. The user "analyst" has none
    # and may query all that is served.
    roles: dict[RoleName, EndpointRole] = Field(default_factory=dict)
    # The heap of the server, which also runs the queries.
    memory: str = "1g"
    # Spark stops a query after this time.
    query_seconds: int = Field(default=600, ge=1)
    # Maximum number of connected clients; further clients wait.
    connections: int = Field(default=50, ge=2)
