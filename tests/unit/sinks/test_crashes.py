"""A process that is killed between delivering and recording: nothing is lost, nothing twice."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from spark_jobs.definitions.vocabulary import SinkSystem
from spark_jobs.sinks.delivery import Delivery
from spark_jobs.sinks.target import Addresses
from spark_jobs.sinks.verify import verify_sink
from spark_jobs.state.failpoints import EXIT_CODE, VARIABLE
from tests.unit.sinks.conftest import Make, Table, rows

# The addresses come by standard input: they may contain secrets.
STEP = """
import pickle
import sys
from pathlib import Path
from spark_jobs.graph.manifest import SinkEntry
from spark_jobs.sinks.delivery import Delivery
sink, location, locks = sys.argv[1:]
addresses = pickle.load(sys.stdin.buffer)
sink = SinkEntry.model_validate_json(sink)
delivery = Delivery(sink, location, lambda: addresses, Path(locks), lambda: None)
delivery.catch_up()
delivery.close()
"""


COUNT = """
CREATE FUNCTION {table}_count() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN INSERT INTO {table}_counts VALUES (TG_OP); RETURN NULL; END $$
"""
COUNTED = """
CREATE TRIGGER counts AFTER INSERT OR UPDATE OR DELETE ON {table}
FOR EACH ROW EXECUTE FUNCTION {table}_count()
"""


def deliver(sink: Delivery, *, failpoint: str) -> int:
    """Deliver in a process of its own, which ends at the failpoint."""
    words = [sink.sink.model_dump_json(), sink.location, str(sink.locks)]
    done = subprocess.run(
        [sys.executable, "-c", STEP, *words],
        input=pickle.dumps(sink.addresses()),
        env={VARIABLE: failpoint, "PATH": ""},
        check=False,
        capture_output=True,
        cwd=Path(__file__).parents[3],
    )
    assert not done.stderr, done.stderr.decode()
    return done.returncode


@pytest.mark.parametrize("system", [SinkSystem.POSTGRES, SinkSystem.REDIS])
@pytest.mark.parametrize("failpoint", ["sink_delivered", "sink_recorded"])
def test_a_killed_delivery_continues_where_it_ended(
    system: SinkSystem, failpoint: str, table: Table, make: Make, addresses: Addresses
) -> None:
    table.create(rows({1: "Ann", 2: "Bob"}))
    sink = make(system)
    assert deliver(sink, failpoint=failpoint) == EXIT_CODE
    assert sink.catch_up().built is (failpoint == "sink_delivered")
    if system is SinkSystem.POSTGRES:
        count_changes(sink, addresses)

    table.upsert(rows({2: "Bill", 3: "Cat"}))
    table.delete("id = 1")
    assert deliver(sink, failpoint=failpoint) == EXIT_CODE
    sink.catch_up()
    assert verify_sink(sink).passed
    if system is SinkSystem.POSTGRES:
        assert counted(sink, addresses) == {"DELETE": 1, "INSERT": 1, "UPDATE": 1}


def count_changes(sink: Delivery, addresses: Addresses) -> None:
    """Let the table itself count what is done to its rows."""
    table = sink.sink.target
    with psycopg.connect(addresses.postgres) as connection:
        for statement in (
            f"CREATE TABLE {table}_counts (what text)",
            COUNT.format(table=table),
            COUNTED.format(table=table),
        ):
            connection.execute(statement.encode())


def counted(sink: Delivery, addresses: Addresses) -> dict[str, int]:
    query = f"SELECT what, count(*) FROM {sink.sink.target}_counts GROUP BY what"
    with psycopg.connect(addresses.postgres) as connection:
        return dict(connection.execute(query.encode()).fetchall())
