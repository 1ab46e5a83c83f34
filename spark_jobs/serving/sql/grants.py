"""What the roles of the SQL endpoint's users may query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from spark_jobs.endpoint_sections import EndpointRole, ServedSchema
from spark_jobs.errors import LakehouseError, ProblemsError, SettingError
from spark_jobs.serving.sql.ops_tables import OPS_TABLES
from spark_jobs.serving.sql.session import declared_tables

if TYPE_CHECKING:
    from spark_jobs.graph.manifest import Manifest


class TableNotGrantedError(LakehouseError):
    """A user queries tables that the user's role does not grant."""

    condition = "TABLE_NOT_GRANTED"
    user: str
    tables: tuple[str, ...]
    primary = "user {user!r} may not query {tables}"
    hint = "endpoint.roles in tidemark.yml says what a role may query; SHOW TABLES lists all names."


def granted_tables(role: EndpointRole, manifest: Manifest) -> set[str]:
    """The names of the tables that a role may query, those of ``ops`` included."""
    found = {*role.tables} | ({*OPS_TABLES} if ServedSchema.OPS in role.schemas else set())
    for name, entry in declared_tables(manifest).items():
        if str(name.layer) in {*map(str, role.schemas)} or {*role.tags} & {*entry.tags}:
            found.add(str(name))
    return found


def check_roles(roles: Mapping[str, EndpointRole], manifest: Manifest) -> None:
    """Check that the tables and tags of all roles exist.

    Args:
        roles: of the endpoint, by name.
        manifest: of the project.

    Raises:
        ProblemsError: some do not, or a role grants nothing.
    """
    declared = declared_tables(manifest)
    names = {*map(str, declared)} | {*OPS_TABLES}
    tags = {tag for entry in declared.values() for tag in entry.tags}
    problems: list[LakehouseError] = []
    for name, role in roles.items():
        key = f"endpoint.roles.{name}"
        problems += [
            SettingError(f"{key}.tables", f"there is no table {one!r}")
            for one in role.tables
            if one not in names
        ]
        problems += [
            SettingError(f"{key}.tags", f"no table has the tag {one!r}")
            for one in role.tags
            if one not in tags
        ]
        if not (role.schemas or role.tags or role.tables):
            problems.append(SettingError(key, "it grants no table"))
    if problems:
        raise ProblemsError(problems)
