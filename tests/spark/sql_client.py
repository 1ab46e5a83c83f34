"""Clients of the SQL endpoint as analysts have them: one of DB-API, and Hive's beeline."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from impala import dbapi
from impala._thrift_api import get_socket, get_transport
from impala.error import Error

from spark_jobs.access.secrets import AUTHORITY, read_secret
from spark_jobs.settings import Settings
from spark_jobs.stack.endpoint import SECRET, USER, jdbc_url
from spark_jobs.stack.ports import LOOPBACK
from spark_jobs.stack.spark_connect import spark_home


@dataclass(frozen=True)
class SqlClient:
    """Asks the server of a project, as the user of all tables or as another."""

    settings: Settings
    user: str = USER
    own_password: str = ""

    @property
    def password(self) -> str:
        return self.own_password or read_secret(self.settings, SECRET)

    @property
    def tls(self) -> dict[str, Any]:
        """What makes a connection be encrypted, and the server show who it is."""
        if not self.settings.security.enabled:
            return {"use_ssl": False, "ca_cert": None, "verify_cert": None}
        authority = str(self.settings.secrets_dir / AUTHORITY)
        return {"use_ssl": True, "ca_cert": authority, "verify_cert": True}

    @contextmanager
    def cursor(self, **configuration: str) -> Iterator[Any]:
        connection = dbapi.connect(
            LOOPBACK,
            self.settings.ports.endpoint,
            auth_mechanism="PLAIN",
            user=self.user,
            password=self.password,
            timeout=60,
            **self.tls,
        )
        with closing(connection), closing(connection.cursor(configuration=configuration)) as one:
            yield one

    def knock(self, user: str, password: str) -> None:
        """Log in, and leave; a client that is refused in ``cursor`` leaves its socket open."""
        with closing(get_socket(LOOPBACK, self.settings.ports.endpoint, **self.tls)) as socket:
            get_transport(socket, LOOPBACK, "hive", "PLAIN", user, password).open()

    def rows(self, statement: str, **configuration: str) -> list[tuple[Any, ...]]:
        with self.cursor(**configuration) as cursor:
            cursor.execute(statement)
            return cursor.fetchall()

    def refusal(self, statement: str, **configuration: str) -> str:
        with pytest.raises(Error) as refused:
            self.rows(statement, **configuration)
        return str(refused.value)

    def beeline(self, *statements: str) -> subprocess.CompletedProcess[str]:
        script = self.settings.state / "statements.sql"
        # Nothing in a state directory is for other accounts.
        script.touch(0o600)
        script.write_text("".join(f"{one}\n" for one in statements))
        home = spark_home()
        options = ("--outputformat=tsv2", "--force=true", "--showHeader=false")
        return subprocess.run(
            [
                *(home / "bin/beeline", "-u", jdbc_url(self.settings), "-n", USER),
                *("-w", self.settings.secrets_dir / SECRET, *options, "-f", script),
            ],
            env={**os.environ, "SPARK_HOME": str(home)},
            capture_output=True,
            text=True,
            check=False,
        )
