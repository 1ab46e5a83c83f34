"""The local PostgreSQL's cluster: how it is made, and how a lost password is replaced.

Its programs are replaced by small ones: only what they get and leave behind counts here.
"""

from __future__ import annotations

import pytest

from spark_jobs.access.secrets import read_secret, secret_path
from spark_jobs.settings import Settings
from spark_jobs.stack import postgres_server
from spark_jobs.stack.errors import PartFailedError
from spark_jobs.stack.postgres import SUPERUSER, secret_name

pytestmark = pytest.mark.unit

INITDB = """\
#!/bin/sh
while [ "$1" != --pgdata ]; do shift; done
mkdir "$2" && echo 16 > "$2/PG_VERSION" && {then} echo '# made' > "$2/postgresql.conf"
"""
POSTGRES = """\
#!/bin/sh
echo "$@" >> "{log}"
cat >> "{log}"
exit {status}
"""


@pytest.fixture
def settings(tmp_path):
    return Settings(project_dir=tmp_path, state_dir=tmp_path / "state")


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Write the server's programs; returns the file of what ``postgres`` was given."""
    directory, log = tmp_path / "bin", tmp_path / "given"
    directory.mkdir()
    monkeypatch.setattr(postgres_server, "binary", lambda name: str(directory / name))
    monkeypatch.setattr(postgres_server, "server_account", lambda: None)

    def write(*, then: str = "", status: int = 0):
        for name, text in {
            "initdb": INITDB.format(then=then),
            "postgres": POSTGRES.format(log=log, status=status),
        }.items():
            (directory / name).write_text(text)
            (directory / name).chmod(0o755)
        return log

    return write


def test_an_interrupted_initdb_is_repeated(settings, programs):
    data = postgres_server.data_directory(settings)
    programs(then="kill -9 $$;")
    with pytest.raises(PartFailedError):
        postgres_server.prepare_cluster(settings)

    programs()
    postgres_server.prepare_cluster(settings)

    assert "include 'tidemark.conf'" in (data / "postgresql.conf").read_text()
    assert [one.name for one in data.parent.iterdir()] == ["data"]


def test_a_cluster_and_its_password_are_kept(settings, programs):
    given = programs()
    postgres_server.prepare_cluster(settings)
    password = read_secret(settings, secret_name(SUPERUSER))
    programs(then="exit 1;")

    postgres_server.prepare_cluster(settings)

    assert read_secret(settings, secret_name(SUPERUSER)) == password
    assert not given.exists()


def test_a_lost_password_of_the_superuser_is_replaced(settings, programs):
    given = programs()
    postgres_server.prepare_cluster(settings)
    lost = secret_path(settings, secret_name(SUPERUSER))
    lost.unlink()

    postgres_server.prepare_cluster(settings)

    arguments, statement = given.read_text().splitlines()
    assert arguments.startswith(f"--single -D {postgres_server.data_directory(settings)}")
    password = read_secret(settings, secret_name(SUPERUSER))
    assert statement == f"ALTER ROLE postgres PASSWORD '{password}'"
    assert password not in arguments
    assert lost.stat().st_mode & 0o777 == 0o600


def test_a_password_that_the_server_did_not_take_is_not_kept(settings, programs):
    programs()
    postgres_server.prepare_cluster(settings)
    lost = secret_path(settings, secret_name(SUPERUSER))
    lost.unlink()
    programs(status=1)

    with pytest.raises(PartFailedError, match="could not replace a lost password"):
        postgres_server.prepare_cluster(settings)

    assert not lost.exists()
