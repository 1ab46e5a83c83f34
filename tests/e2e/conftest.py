"""The stacks of the end-to-end tests. Tests of one stack share it, one after the other."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from spark_jobs.cli.demo import PERIOD, SCHEDULED
from spark_jobs.stack.catalog import make_topics
from spark_jobs.stack.stack import write_manifest
from tests.accounts import SOMEBODY, can_be_somebody
from tests.e2e.airflow_world import Airflow, small_airflow
from tests.e2e.running import RunningStack, new_stack
from tests.e2e.soundness import shop_of
from tests.e2e.topic_world import Events, small_broker
from tests.stacks import STACK_OF

SCHEDULE = {"every_override": PERIOD, "scheduled_at_first": SCHEDULED}


# The stacks that tests share, until the last of them has ended.
_SHARED, _PLAIN = ExitStack(), ExitStack()


@pytest.fixture(scope="session")
def stack() -> Iterator[RunningStack]:
    """A full stack with security, as in production.

    Tests share it, so each uses its own names and keys.
    """
    endpoint = {"account": SOMEBODY} if can_be_somebody() else {}
    with _SHARED:
        yield _SHARED.enter_context(contextmanager(full_stack)(endpoint=endpoint))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, None, None]:
    """Stop a shared stack after its last test: while it idles, other tests lack its cores."""
    yield
    if shares(item) and not (nextitem and shares(nextitem)):
        _SHARED.close()
    items = item.session.items
    if not any(map(needs_plain, items[items.index(item) + 1 :])):
        _PLAIN.close()


def shares(item: pytest.Item) -> bool:
    """Whether a test's file uses the shared stack."""
    return item.nodeid.partition("::")[0] in STACK_OF


def needs_plain(item: pytest.Item) -> bool:
    """Whether a test uses the plain stack, which a fixture may name as its parameter."""
    if not isinstance(item, pytest.Function):
        return False
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return "plain_stack" in {*item.fixturenames, *map(str, parameters)}


@pytest.fixture(scope="session")
def plain_stack() -> Iterator[RunningStack]:
    """A full stack as `make up` starts it by default."""
    with _PLAIN:
        yield _PLAIN.enter_context(contextmanager(full_stack)(secured=False))


def full_stack(**overrides: object) -> Iterator[RunningStack]:
    yield from running_parts(gold=SCHEDULE, **overrides)


def running_parts(*parts: str, **overrides: object) -> Iterator[RunningStack]:
    """A new stack of some parts, by default all."""
    with new_stack(**overrides) as running:
        running.up(*parts)
        yield running


@pytest.fixture(scope="session")
def shop(stack: RunningStack) -> str:
    """The shop's database with its tables."""
    return shop_of(stack)


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    """Airflow and Spark for a project with a foreign table, without Kafka."""
    yield from small_airflow(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Events]:
    """A broker and the streaming application; every topic has been read to its end."""
    yield from small_broker(tmp_path_factory.mktemp("topics"))


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningStack]:
    """Only a broker."""
    yield from running_parts("kafka")


@pytest.fixture(scope="module")
def capture() -> Iterator[RunningStack]:
    """The parts that capture a database's changes into the broker."""
    for running in running_parts("postgres", "connect"):
        # A test's own streams read with the rights of the application.
        write_manifest(running.settings)
        make_topics(running.settings)
        yield running


@pytest.fixture(scope="module")
def small_stack() -> Iterator[RunningStack]:
    """A stack that tests may break; the previous test may have left it in any state."""
    with new_stack() as running:
        yield running
