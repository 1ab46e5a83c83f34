"""The shop's database: its tables, and transactions as the plan describes them."""

from __future__ import annotations

from importlib.resources import files

import psycopg
from psycopg import sql

from spark_jobs.access import timeouts
from spark_jobs.access.postgres import certificate_refusal
from spark_jobs.demo.errors import ShopUnreachableError
from spark_jobs.demo.operations import Change, ChangeKind, Ending, Transaction


def connect(dsn: str) -> psycopg.Connection:
    """A connection that commits each statement outside of a transaction block.

    Raises:
        ShopUnreachableError: no server answers, or it refuses the login.
        CertificateRefusedError: the server's certificate is not trusted.
    """
    try:
        return psycopg.connect(dsn, autocommit=True, **timeouts.POSTGRES)
    except psycopg.OperationalError as error:
        refused = certificate_refusal(dsn, error)
        raise refused or ShopUnreachableError(_one_line(error)) from error


def create_shop(dsn: str) -> None:
    """Create the tables that are missing.

    Raises:
        ShopUnreachableError: the database does not answer, or refuses the login.
        CertificateRefusedError: its certificate is not trusted.
    """
    script = files("spark_jobs.demo").joinpath("shop.sql").read_text(encoding="utf-8")
    with connect(dsn) as connection:
        connection.execute(script.encode())


def next_run(connection: psycopg.Connection) -> int:
    """A number that is unique among the load runs on this database."""
    [(number,)] = connection.execute("SELECT nextval('load_runs')").fetchall()
    return int(number)


def apply(connection: psycopg.Connection, transaction: Transaction) -> None:
    """Run a transaction, and commit it or roll it back.

    Raises:
        ShopUnreachableError: the connection to the database was lost.
    """
    try:
        with connection.transaction():
            for change in transaction.changes:
                connection.execute(
                    statement(change), [*change.values.values(), *change.key.values()]
                )
            if transaction.ending is Ending.ROLLBACK:
                raise psycopg.Rollback
    except psycopg.OperationalError as error:
        raise ShopUnreachableError(_one_line(error)) from error


def statement(change: Change) -> sql.Composed:
    """SQL with a placeholder for each value, then one for each part of the key."""
    names = [sql.Identifier(name) for name in (*change.values, *change.key)]
    table = sql.Identifier(change.table)
    where = sql.SQL(" AND ").join(
        sql.SQL("{} = %s").format(sql.Identifier(name)) for name in change.key
    )
    match change.kind:
        case ChangeKind.INSERT:
            marks = sql.SQL(", ").join([sql.Placeholder()] * len(names))
            return sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
                table, sql.SQL(", ").join(names), marks
            )
        case ChangeKind.UPDATE:
            settings = sql.SQL(", ").join(
                sql.SQL("{} = %s").format(sql.Identifier(name)) for name in change.values
            )
            return sql.SQL("UPDATE {} SET {} WHERE {}").format(table, settings, where)
        case ChangeKind.DELETE:
            return sql.SQL("DELETE FROM {} WHERE {}").format(table, where)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")
