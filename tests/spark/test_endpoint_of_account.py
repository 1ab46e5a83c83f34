"""The SQL endpoint with an account of its own: it serves gold, and reads nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_jobs.settings import load_settings
from spark_jobs.stack.endpoint import endpoint_part
from spark_jobs.stack.endpoint_files import endpoint_files
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.accounts import Account, own_folder
from tests.accounts import SOMEBODY, WHY_NOT, can_be_somebody
from tests.spark.sql_client import SqlClient
from tests.spark.test_endpoint import BY_CITY, START_SECONDS, declare, publish
from tests.spark.test_gold_over_connect import SOURCE, free_port

ACCOUNT = SOMEBODY
KEY = "PASSWORD_OF_SOMEBODY"

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.skipif(not can_be_somebody(), reason=WHY_NOT),
]


@pytest.fixture(scope="module")
def client() -> Iterator[SqlClient]:
    # Pytest's own folders are closed to other accounts.
    with tempfile.TemporaryDirectory(prefix="tidemark of another account ", dir="/tmp") as name:
        Path(name).chmod(0o711)
        yield from serving(Path(name))


def serving(folder: Path) -> Iterator[SqlClient]:
    (folder / "sources").mkdir()
    (folder / "sources/parcels.yml").write_text(SOURCE)
    weight = pa.array([None], pa.decimal128(9, 2))
    write_deltalake(folder / "data/parcels", pa.table({"city": ["Bonn"], "weight": weight}))
    declare(folder, "by_city", BY_CITY, "How many parcels go to each city.")
    settings = load_settings(
        folder,
        state_dir=folder / "state",
        ports={"endpoint": free_port()},
        endpoint={"account": ACCOUNT},
    )
    publish(f"{settings.lake}/gold/by_city", city=["Bonn"], parcels=[3])
    for closed in ("bronze", "silver", "_quarantine"):
        publish(f"{settings.lake}/{closed}/people", name=["Ann"])
    with ControlStore.open(settings.control_url):
        pass  # It is there from now on.
    part = endpoint_part(settings)
    part.prepare()
    with (folder / "server.log").open("w") as output:
        process = subprocess.Popen(
            [
                *(sys.executable, "-c", "from spark_jobs.cli.main import run; run()"),
                *("endpoint", "--foreground"),
            ],
            env={
                **os.environ,
                **part.environment,
                KEY: "a secret",
                "TIDEMARK_PROJECT": str(folder),
                "TIDEMARK_STATE_DIR": str(settings.state),
                "TIDEMARK_PORTS__ENDPOINT": str(settings.ports.endpoint),
                "TIDEMARK_ENDPOINT__ACCOUNT": ACCOUNT,
            },
            # As the stack starts its parts.
            umask=0o077,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while (problem := part.probe()) is not None:
            assert process.poll() is None, (folder / "server.log").read_text()
            assert time.monotonic() < deadline, problem
            time.sleep(0.5)
        yield SqlClient(settings)
        java = server(settings.ports.endpoint)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, (folder / "server.log").read_text()
        assert not java.is_running()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def server(port: int) -> psutil.Process:
    """The process that clients talk to."""
    (pid,) = {
        one.pid
        for one in psutil.net_connections("tcp")
        if one.status == psutil.CONN_LISTEN and one.laddr.port == port
    }
    return psutil.Process(pid)


def test_gold_and_ops_are_served(client: SqlClient) -> None:
    assert client.rows("SELECT b.parcels FROM gold.by_city AS b") == [(3,)]
    question = "SELECT f.table_name, f.freshness FROM ops.freshness AS f"
    assert client.rows(question) == [("gold.by_city", "unpublished")]
    # A table without rows goes another way.
    assert client.rows("SELECT r.rule FROM ops.refreshes AS r") == []
    assert ("by_city",) in [row[1:2] for row in client.rows("SHOW TABLES IN gold")]


def test_a_result_that_is_put_on_the_disk_is_whole(client: SqlClient) -> None:
    rows = "SELECT count(DISTINCT r.id % 100000) AS n FROM range(300000) AS r"
    assert client.rows(rows) == [(100_000,)]


def test_the_server_has_the_account_and_no_group_of_the_stack_s(client: SqlClient) -> None:
    java, account = server(client.settings.ports.endpoint), Account.named(ACCOUNT)
    assert set(java.uids()) == {account.uid}
    assert set(java.gids()) == {account.gid}
    groups = Path(f"/proc/{java.pid}/status").read_text().partition("Groups:")[2]
    assert groups.splitlines()[0].strip() in {"", str(account.gid)}
    (capable,) = (
        line.split()[1]
        for line in Path(f"/proc/{java.pid}/status").read_text().splitlines()
        if line.startswith("CapEff")
    )
    assert int(capable, 16) == 0
    variables = java.environ()
    assert KEY not in variables
    assert not [name for name in variables if name.startswith("TIDEMARK_")]


def test_of_the_state_directory_the_account_reads_gold_alone(client: SqlClient) -> None:
    settings = client.settings
    files = endpoint_files(settings)
    own, gold = str(own_folder(files)), f"{settings.lake}/gold"
    for closed in ("control.db", "manifest.json", "secrets/endpoint", "lake/silver/people"):
        assert (settings.state / closed).exists()
    read, written = allowed(settings.state)
    assert f"{gold}/by_city/_delta_log" in read
    assert own in read
    # Its own program, which it has to load, and the folders on the way.
    others = {one for one in read if not one.startswith((gold, own, str(files / "classes")))}
    assert others == {str(settings.state), settings.lake}
    assert own in written
    assert {one for one in written if not one.startswith(own)} == set()


def test_spark_as_the_account_reads_no_other_file(client: SqlClient) -> None:
    """What a statement could read that no check stops: the rights of the process decide."""
    settings = client.settings
    for place in ("control.db", "secrets/endpoint", "lake/bronze/people/_delta_log"):
        done = subprocess.run(["cat", str(settings.state / place)], **as_account(), check=False)
        assert "Permission denied" in done.stderr


def test_other_accounts_cannot_call_the_driver(client: SqlClient) -> None:
    """The port at which the JVM asks who may come in would tell anybody right passwords."""
    driver = server(client.settings.ports.endpoint).parent()
    assert driver is not None
    ports = [
        one.laddr.port for one in driver.net_connections("tcp") if one.status == psutil.CONN_LISTEN
    ]
    assert ports
    guess = "c\\np0\\ntest\\nsanalyst\\nsguess\\ne\\n"
    for port in ports:
        call = f"exec 3<>/dev/tcp/127.0.0.1/{port}; printf '{guess}' >&3; timeout 5 cat <&3"
        stranger = {**as_account(), "user": Account.named("daemon").uid}
        answer = subprocess.run(["bash", "-c", call], **stranger, check=False)
        assert answer.stdout == ""
    assert client.rows("SELECT 1 AS one") == [(1,)]


def test_silver_is_no_table_here(client: SqlClient) -> None:
    assert "[UNKNOWN_TABLE]" in client.refusal("SELECT p.name FROM silver.people AS p")


def as_account() -> dict[str, object]:
    account = Account.named(ACCOUNT)
    who = {"user": account.uid, "group": account.gid, "extra_groups": []}
    return {**who, "capture_output": True, "text": True, "cwd": "/"}


def allowed(folder: Path) -> tuple[set[str], set[str]]:
    """What the account may read or list below a folder, and what it may write."""
    script = """while IFS= read -r -d '' one; do
      [ -r "$one" ] && printf 'r%s\\n' "$one"
      [ -w "$one" ] && printf 'w%s\\n' "$one"
    done; true"""
    # Whoever cannot list a folder may still know the names in it.
    names = "".join(f"{one}\0" for one in (folder, *folder.rglob("*")))
    found = subprocess.run(["bash", "-c", script], **as_account(), input=names, check=True)
    lines = found.stdout.splitlines()
    return tuple({one[1:] for one in lines if one[0] == kind} for kind in "rw")  # type: ignore[return-value]
