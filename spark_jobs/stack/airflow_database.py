"""Migrates Airflow's metadata database and creates its users and pools, in one process.

Airflow's own commands would take a start of Airflow each. Run with Airflow's environment:
``python -m spark_jobs.stack.airflow_database [--reset] USERS.json PASSWORD-FILE POOL=SLOTS...``;
the password is that of the user who emits events, who is not created if the file does not exist.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from spark_jobs.access.airflow import ANNOUNCER

# The role of on-call engineers.
ON_CALL = "User"
# The option that lets the file's passwords replace those of existing users.
RESET = "--reset"


def migrate() -> None:
    """Migrate the database to the installed Airflow's schema, including authentication tables."""
    from airflow.utils.db import upgradedb  # noqa: PLC0415

    upgradedb()


def make_users(users: dict[str, dict[str, str]], *, reset: bool) -> None:
    """Create the users that do not exist yet, with the built-in roles.

    Args:
        users: ``role`` and ``password``, by user name.
        reset: give these passwords to existing users too: the file was made again, and its
            passwords were shown. Otherwise people may have changed theirs.
    """
    from airflow.providers.fab.auth_manager.cli_commands.utils import (  # noqa: PLC0415
        get_application_builder,
    )
    from airflow.providers.fab.www.security import permissions  # noqa: PLC0415

    with get_application_builder() as builder:
        security = builder.sm
        security.sync_roles()
        # Airflow shows the page of all tables only to users who may read plugins.
        seen = security.create_permission(permissions.ACTION_CAN_READ, permissions.RESOURCE_PLUGIN)
        security.add_permission_to_role(security.find_role(ON_CALL), seen)
        for name, user in users.items():
            role = security.find_role(user["role"])
            known = security.find_user(name)
            if known is None:
                known = security.add_user(
                    name, name.capitalize(), "Tidemark", f"{name}@localhost", role, user["password"]
                )
            elif reset and not security.check_password(name, user["password"]):
                known = security.reset_password(known.id, user["password"])
            if not known:
                raise SystemExit(f"Airflow did not make user {name!r}")


def make_announcer(name: str, password: str) -> None:
    """Create the user as whom the streams emit asset events; otherwise it may only read.

    No person knows its password, so a secret that was made again replaces it.
    """
    from airflow.providers.fab.auth_manager.cli_commands.utils import (  # noqa: PLC0415
        get_application_builder,
    )
    from airflow.providers.fab.www.security import permissions  # noqa: PLC0415

    with get_application_builder() as builder:
        security = builder.sm
        role = security.add_role(name.capitalize())
        # Airflow shows an event of a task only to users who may read its DAG.
        for action, resource in (
            (permissions.ACTION_CAN_READ, permissions.RESOURCE_ASSET),
            (permissions.ACTION_CAN_CREATE, permissions.RESOURCE_ASSET),
            (permissions.ACTION_CAN_READ, permissions.RESOURCE_ASSET_ALIAS),
            (permissions.ACTION_CAN_READ, permissions.RESOURCE_DAG),
        ):
            security.add_permission_to_role(role, security.create_permission(action, resource))
        user = security.find_user(name)
        if user is None:
            known = security.add_user(
                name, name.capitalize(), "Tidemark", f"{name}@localhost", role, password
            )
        elif not security.check_password(name, password):
            known = security.reset_password(user.id, password)
        else:
            known = user
        if not known:
            raise SystemExit(f"Airflow did not make user {name!r}")


def make_pools(slots: dict[str, int]) -> None:
    """Create the pools that do not exist yet; a pool that an operator resized keeps its size.

    Args:
        slots: number of slots, by pool.
    """
    from airflow.models.pool import Pool  # noqa: PLC0415

    for name, count in slots.items():
        if Pool.get_pool(name) is None:
            text = "A pool of Tidemark's tasks."
            Pool.create_or_update_pool(name, slots=count, description=text, include_deferred=False)


def main() -> None:
    """Migrate, and create the users and pools that the command line names."""
    words = [one for one in sys.argv[1:] if one != RESET]
    users = json.loads(Path(words[0]).read_text())
    password = Path(words[1])
    slots = dict(one.split("=", 1) for one in words[2:])
    migrate()
    make_users(users, reset=RESET in sys.argv)
    if password.exists():
        make_announcer(ANNOUNCER, password.read_text().strip())
    make_pools({name: int(count) for name, count in slots.items()})


if __name__ == "__main__":
    main()
