"""The operating system's account of the SQL endpoint: requirements, and access to its files."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from spark_jobs.errors import SettingError
from spark_jobs.settings import Settings
from spark_jobs.stack.endpoint_files import endpoint_files
from spark_jobs.stack.spark_home import spark_home
from spark_jobs.storage.accounts import Account, make_folders, may_change_accounts
from spark_jobs.storage.conf import LOG_CONFIGURATION
from spark_jobs.storage.lake import Lake, remote_location
from spark_jobs.storage.rights import restrict

SETTING = "endpoint.account"


def endpoint_account(settings: Settings) -> Account:
    """The account that the setting names.

    Raises:
        SettingError: the endpoint cannot run as this account.
    """
    name = settings.endpoint.account
    try:
        account = Account.named(name)
    except KeyError as error:
        raise SettingError(SETTING, f"this machine has no account {name!r}; make one") from error
    if account.uid in {0, os.geteuid()}:
        problem = f"{name!r} can read more than gold; name an account that owns nothing"
        raise SettingError(SETTING, problem)
    if account.gid in {0, os.getegid(), *os.getgroups()}:
        problem = f"the first group of {name!r} is one of the stack's, which may read the lake"
        raise SettingError(SETTING, problem)
    if remote_location(settings.lake):
        problem = (
            "the lake is in an object store, whose key gives access to everything; leave it empty"
        )
        raise SettingError(SETTING, problem)
    if not may_change_accounts():
        problem = f"only root may start a process as {name!r}; start the stack as root"
        raise SettingError(SETTING, problem)
    return account


def check_endpoint_account(settings: Settings) -> None:
    """Check that the endpoint can run as the account, and that it can read the server's files.

    Raises:
        SettingError: it cannot.
    """
    if not settings.endpoint.account:
        return
    account = endpoint_account(settings)
    groups = {account.gid}
    for place in _places(settings):
        for folder in reversed((place, *place.parents)):
            # Missing directories are created with access for other accounts.
            with suppress(FileNotFoundError):
                if not may_pass(folder.stat(), account.uid, groups):
                    problem = f"{account.name!r} may not access {str(folder)!r}"
                    raise SettingError(SETTING, f"{problem}, on the way to {str(place)!r}")


def prepare_account(settings: Settings) -> Account:
    """Create the directories of the endpoint's account.

    Raises:
        SettingError: the endpoint cannot run as this account.
    """
    check_endpoint_account(settings)
    account = endpoint_account(settings)
    make_folders(endpoint_files(settings), account)
    restrict(Lake(settings.lake), readable=settings.security.readable)
    return account


def may_pass(status: os.stat_result, uid: int, groups: set[int]) -> bool:
    """Whether an account may traverse a directory with these permissions."""
    bit = stat.S_IXOTH
    if status.st_uid == uid:
        bit = stat.S_IXUSR
    elif status.st_gid in groups:
        bit = stat.S_IXGRP
    return bool(status.st_mode & bit)


def _places(settings: Settings) -> Iterator[Path]:
    """The directories that the server's JVM reads, with links resolved."""
    java = shutil.which("java")
    if home := os.environ.get("JAVA_HOME"):
        java = str(Path(home) / "bin/java")
    if java:
        yield Path(java).resolve().parent
    yield (spark_home() / "jars").resolve()
    yield settings.spark_jars.resolve()
    yield LOG_CONFIGURATION.parent.resolve()
    yield settings.state.resolve()
    yield Path(settings.lake).resolve()
