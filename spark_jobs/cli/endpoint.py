"""``tidemark endpoint``: silver, gold and ops for JDBC, ODBC and Python DB-API clients."""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from spark_jobs.errors import LakehouseError
from spark_jobs.settings import Settings, load_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)
# Seconds until new tables, columns and descriptions are listed.
LIST_SECONDS = 10
LIMIT_SECONDS = 1


app = typer.Typer(help="Serve silver, gold and ops to SQL clients.")
users_app = typer.Typer(
    no_args_is_help=True,
    help="Users of the SQL endpoint, with the roles of the setting endpoint.roles.",
)
app.add_typer(users_app, name="user")

UserName = Annotated[str, typer.Argument(help="The user's name.")]


@app.callback(invoke_without_command=True)
def endpoint(
    context: typer.Context,
    foreground: Annotated[
        bool,
        typer.Option(
            "--foreground", help="Serve in this process until it is stopped, without the stack."
        ),
    ] = False,
) -> None:
    """Start the SQL endpoint, which serves silver, gold and ops, as a part of the local stack."""
    if context.invoked_subcommand is not None:
        return
    settings = load_settings(context.obj)
    if foreground:
        run(settings)
        return
    from spark_jobs.access.secrets import secret_path
    from spark_jobs.serving.project import applied_manifest
    from spark_jobs.serving.sql.grants import check_roles
    from spark_jobs.stack.endpoint import NAME, SECRET, USER, jdbc_url
    from spark_jobs.stack.stack import Stack
    from spark_jobs.stack.start_display import showing_progress

    check_roles(settings.endpoint.roles, applied_manifest(settings))
    console = Console(highlight=False, soft_wrap=True)
    with showing_progress(console) as report:
        Stack(settings).up(report, parts=[NAME])
    console.print(f"The SQL endpoint serves silver, gold and ops at {jdbc_url(settings)}")
    console.print(f"User {USER}; the password is in {secret_path(settings, SECRET)}")


@users_app.command("add")
def add(
    context: typer.Context,
    name: UserName,
    role: Annotated[str, typer.Option(help="A role of the setting endpoint.roles.")],
) -> None:
    """Create a user and print the password, which is not stored; again: change both."""
    from spark_jobs.stack.endpoint_users import add_user

    password = add_user(load_settings(context.obj), name, role)
    typer.echo(f"User {name} has role {role}. The password is shown once:", err=True)
    typer.echo(password)


@users_app.command("remove")
def remove(context: typer.Context, name: UserName) -> None:
    """Remove a user; statements of open connections are refused from now on."""
    from spark_jobs.stack.endpoint_users import remove_user

    remove_user(load_settings(context.obj), name)
    typer.echo(f"User {name} is removed.")


@users_app.command("list")
def list_users(context: typer.Context) -> None:
    """Show the users and their roles."""
    from spark_jobs.stack.endpoint_users import ANALYST, read_users
    from spark_jobs.terminal.tables import FittedTable

    table = FittedTable("user", "role")
    table.add_row(ANALYST, "all that is served")
    for name, user in read_users(load_settings(context.obj)).items():
        table.add_row(name, user.role)
    Console(highlight=False).print(table)


def run(settings: Settings) -> None:
    """Serve in this process until it is stopped; the local stack runs this.

    Raises:
        LakehouseError: the declarations are wrong, or jars or Java are missing.
    """
    from spark_jobs.stack.endpoint import prepare_endpoint

    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr
    )
    # py4j logs every call that Spark makes back into this process.
    logging.getLogger("py4j").setLevel(logging.WARNING)
    stopping = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        del number, frame
        stopping.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    prepare_endpoint(settings)
    serve(settings, stopping)


def serve(settings: Settings, stopping: threading.Event) -> None:
    """Serve until the event is set.

    Raises:
        LakehouseError: the declarations are wrong, or jars or Java are missing.
    """
    from spark_jobs.serving.project import applied_manifest as compiled_now
    from spark_jobs.serving.sql.gate import SCHEMAS, EndpointSession, judge, served_layers
    from spark_jobs.serving.sql.listing import Listing
    from spark_jobs.serving.sql.thrift import JobLimit, start_server
    from spark_jobs.stack.endpoint import Pulse, may_enter, served_key_store
    from spark_jobs.stack.endpoint_files import endpoint_files
    from spark_jobs.storage.in_force import current_manifest, follow_in_force

    # Names come from the compiled project, like those of refreshes.
    compiled = current_manifest(settings.manifest_file, compiled_now(settings))
    with server_session(settings) as spark:
        session = EndpointSession(
            settings=settings, layers=served_layers(settings), driver=spark, compiled=compiled
        )
        listing, limit = Listing(spark), JobLimit(spark, settings.endpoint.query_seconds)
        listing.make_schemas(SCHEMAS)
        listing.show(session.listed())
        with served_key_store(settings) as key_store:
            start_server(
                spark,
                partial(may_enter, settings),
                partial(judge, session),
                files=endpoint_files(settings),
                key_store=key_store,
            )
        listed_at, pulse = time.monotonic(), Pulse(settings)
        while not stopping.wait(LIMIT_SECONDS):
            limit.enforce()
            pulse.check()
            if time.monotonic() - listed_at > LIST_SECONDS:
                follow_in_force(settings, compiled().deployment)
                try:
                    listing.show(session.listed())
                except LakehouseError as error:
                    logger.warning("names are listed as before error=%s", error)
                listed_at = time.monotonic()


@contextmanager
def server_session(settings: Settings) -> Iterator[SparkSession]:
    """The Spark session of the server, in a JVM that runs as the configured account.

    Raises:
        LakehouseError: jars or Java are missing, or the account cannot run the JVM.
    """
    from spark_jobs.serving.sql.thrift import make_class_path, thrift_conf
    from spark_jobs.stack.endpoint_account import prepare_account
    from spark_jobs.stack.endpoint_files import endpoint_files
    from spark_jobs.storage.accounts import jvm_of
    from spark_jobs.storage.conf import session_conf
    from spark_jobs.storage.java_classes import ensure_classes
    from spark_jobs.storage.session import driver_session

    conf = thrift_conf(settings)
    with ExitStack() as running:
        account = None
        if settings.endpoint.account:
            account, files = prepare_account(settings), endpoint_files(settings)
            ensure_classes(settings)
            make_class_path(settings)
            running.enter_context(jvm_of(account, {**session_conf(settings), **conf}, files=files))
        else:
            make_class_path(settings)
        spark = driver_session(settings, "tidemark endpoint", conf=conf, account=account)
        running.callback(spark.stop)
        yield spark
