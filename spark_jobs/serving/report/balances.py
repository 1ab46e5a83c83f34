"""The balance of each source over all layers, and its table for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rich.table import Table

from spark_jobs.errors import LakehouseError
from spark_jobs.terminal.tables import FittedTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.bronze.reconcile import BronzeBalance
    from spark_jobs.bronze.topics import Topics
    from spark_jobs.bronze.transactions import EndedTransactions
    from spark_jobs.graph.manifest import SilverEntry, SourceEntry
    from spark_jobs.serving.project import OpenProject
    from spark_jobs.silver.check.reconcile import SilverBalance
    from spark_jobs.silver.check.source_database import SourceDifference
    from spark_jobs.silver.check.transactions import IncompleteTransaction

SHOWN_TRANSACTIONS = 5
# Approximate number of rows of a larger table that are compared with the database.
MOST_ROWS = 1_000_000


@dataclass(frozen=True)
class Balance:
    """The balance of a silver table and its source; unknown parts are None.

    Attributes:
        transactions: number of database transactions that were compared with bronze.
        problems: what does not balance, one sentence each.
        notes: what a reader should know although it balances.
    """

    source: str
    silver: str
    kafka: BronzeBalance | None
    records: SilverBalance | None
    database: SourceDifference | None
    transactions: int | None
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def pending(self) -> int:
        """Records that are not processed yet."""
        return (self.kafka.lag if self.kafka else 0) + (self.records.pending if self.records else 0)

    @property
    def verdict(self) -> str:
        """One of: balanced, in flight, differs."""
        if self.problems:
            return "differs"
        return "in flight" if self.pending else "balanced"

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object: the attributes, and the properties ``pending`` and ``verdict``."""
        return {**asdict(self), "pending": self.pending, "verdict": self.verdict}


def reconcilable(project: OpenProject, names: list[str] | None) -> list[SilverEntry]:
    """The silver tables over topics: the named ones, or all.

    Raises:
        SilverTableUnknownError: there is no such silver table over a topic.
    """
    from spark_jobs.silver.errors import SilverTableUnknownError

    sources, silver = project.manifest.sources, project.manifest.silver
    known = {one.name: one for one in silver.values() if sources[one.source].topic is not None}
    asked = [name.removeprefix("silver.") for name in names or known]
    for name in asked:
        if name not in known:
            raise SilverTableUnknownError(name, sorted(known))
    return [one for name, one in known.items() if name in asked]


def balances(
    project: OpenProject,
    *,
    session: Callable[[], SparkSession] | None,
    dsn: str | None,
    entries: list[SilverEntry] | None = None,
    note: Callable[[str], None] = lambda _: None,
    most_rows: int = MOST_ROWS,
) -> Iterator[Balance]:
    """The balances of silver tables over topics; an error of one does not affect the others.

    Args:
        project: the open project.
        session: opens a Spark session, to compare rows with the source database.
        dsn: connection string of the source database; None: not compared.
        entries: from ``reconcilable``; None: all.
        note: called with the name of each table.
        most_rows: of a larger table about so many rows are compared with the database; 0: all.

    Raises:
        SecretMissingError: the login to the brokers is not known.
    """
    from spark_jobs.access.kafka import Principal, kafka_access
    from spark_jobs.bronze.topics import Topics

    topics = Topics(kafka_access(project.settings, Principal.STREAMS))
    # Read this before bronze: Kafka has all changes of transactions that have ended by now.
    ended = _ended_transactions(project, topics) if session is not None else {}
    entries = reconcilable(project, None) if entries is None else entries
    for number, entry in enumerate(entries, 1):
        note(f"silver.{entry.name}, {number} of {len(entries)}")
        yield _balance(
            project,
            entry,
            topics=topics,
            ended=ended,
            session=session,
            dsn=dsn,
            most_rows=most_rows,
        )


def _ended_transactions(project: OpenProject, topics: Topics) -> dict[str, EndedTransactions]:
    """The finished transactions of each source's database, by source.

    Empty if no broker answers: each balance reports that itself.
    """
    from spark_jobs.bronze.errors import KafkaUnreachableError
    from spark_jobs.bronze.transactions import read_transactions, transaction_topic

    names = {
        source.name: transaction_topic(source.topic, source.table)
        for source in project.manifest.sources.values()
        if source.topic and source.table
    }
    try:
        told = {
            topic: read_transactions(topics, topic)
            for topic in {topic for topic in names.values() if topic is not None}
        }
    except KafkaUnreachableError:
        return {}
    return {name: told[topic] for name, topic in names.items() if topic is not None}


def _balance(
    project: OpenProject,
    entry: SilverEntry,
    *,
    topics: Any,
    ended: Mapping[str, EndedTransactions],
    session: Callable[[], SparkSession] | None,
    dsn: str | None,
    most_rows: int,
) -> Balance:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from spark_jobs.bronze.reconcile import reconcile_bronze
    from spark_jobs.silver.check.reconcile import reconcile_silver
    from spark_jobs.silver.check.source_database import compare_with_source
    from spark_jobs.silver.store.tables import SilverTables
    from spark_jobs.storage.lake import Lake
    from spark_jobs.storage.reader import read_by_delta

    source = project.manifest.sources[entry.source]
    lake = Lake(project.settings.lake)
    bronze = lake.location(source.table_name)
    tables = SilverTables.of(lake, entry)
    kafka: BronzeBalance | None = None
    records: SilverBalance | None = None
    database: SourceDifference | None = None
    transactions: int | None = None
    problems: list[str] = []
    notes: list[str] = []
    try:
        records = reconcile_silver(lake, tables, store=project.store, source=bronze)
        problems += records.problems
        kafka = reconcile_bronze(topics, source.topic or "", location=bronze)
        problems += kafka.problems
        pending = records.pending or kafka.lag
        if session is not None and not pending and not problems and source.table:
            spark = session()
            if source.name in ended:
                transactions, lacking, notes = _transactions(
                    ended[source.name], source, spark, bronze
                )
                problems += lacking
            if dsn:
                silver = read_by_delta(spark, tables.table)
                database = compare_with_source(
                    spark,
                    silver,
                    source,
                    entry,
                    dsn=dsn,
                    max_bytes=project.settings.streams.max_record_bytes,
                    most_rows=most_rows,
                )
                problems += database_problems(database, source, entry)
    except LakehouseError as error:
        detail = f": {error.detail}" if error.detail else ""
        problems.append(f"{error.primary}{detail} [{error.condition}]")
    except (PySparkException, Py4JError) as error:
        # The SELECT failed on a value, or Spark ended; continue with the other tables.
        problems.append(f"Spark cannot compare the rows: {str(error).strip().splitlines()[0]}")
    return Balance(
        source.name,
        entry.name,
        kafka,
        records,
        database,
        transactions,
        tuple(problems),
        tuple(notes),
    )


def _transactions(
    ended: EndedTransactions, source: SourceEntry, spark: SparkSession, bronze: str
) -> tuple[int, list[str], list[str]]:
    """Number of transactions that changed a table, problems with them, and notes."""
    from spark_jobs.silver.check.transactions import incomplete_transactions
    from spark_jobs.storage.reader import read_by_delta

    changes = ended.changes.get(source.table or "", {})
    found = incomplete_transactions(
        read_by_delta(spark, bronze), changes, told_at=ended.told_at, since=ended.since or 0
    )
    return len(changes), *transaction_lines(found)


def transaction_lines(found: list[IncompleteTransaction]) -> tuple[list[str], list[str]]:
    """Problems with the transactions, and notes on them; one line each."""
    problems, notes = [], []
    if lacking := [one for one in found if not one.in_snapshot]:
        problems.append(f"bronze lacks changes of {_listed(lacking)}")
    if replaced := [one for one in found if one.in_snapshot]:
        notes.append(
            f"bronze lacks changes of {_listed(replaced)}; a later snapshot has read their rows, "
            "so silver lacks at most earlier versions of them"
        )
    return problems, notes


def _listed(found: Sequence[IncompleteTransaction]) -> str:
    shown = ", ".join(map(str, found[:SHOWN_TRANSACTIONS]))
    more = ", ..." if len(found) > SHOWN_TRANSACTIONS else ""
    return f"{len(found)} {'transaction' if len(found) == 1 else 'transactions'}: {shown}{more}"


def database_problems(
    database: SourceDifference, source: SourceEntry, entry: SilverEntry
) -> list[str]:
    """The differences, one line each; personal data is masked."""
    from spark_jobs.serving.report.masking import masked

    found = [
        f"column {name!r} is not compared: the connector does not send values of type {kind}"
        for name, kind in database.unread
    ]
    found += [
        f"{one.rows} rows of the source cannot be in silver: {one.reason} {one.detail or ''}; "
        f"the first is {masked(one.example, source.columns)}"
        for one in database.unfit
    ]
    if database.missing or database.unexpected:
        found.append(
            f"silver rows = source rows: {database.missing} rows are only in the source, "
            f"{database.unexpected} only in silver"
        )
    return found + [
        f"only in {side}: {masked(row, entry.columns)}" for side, row in database.examples
    ]


def balances_table(found: list[Balance]) -> Table:
    """Records, their dispositions, and the verdict."""
    table = FittedTable(title="Records in and where each ended")
    table.add_column("silver table", no_wrap=True)
    for name in (
        "kafka",
        "bronze",
        "applied",
        "superseded",
        "quarantined",
        "duplicate",
        "ignored",
        "silver rows",
        "postgres rows",
    ):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for one in found:
        totals = one.records.totals if one.records else None
        numbers = [
            one.kafka.kafka if one.kafka else None,
            one.kafka.bronze if one.kafka else None,
            *(
                getattr(totals, name, None)
                for name in ("applied", "superseded", "quarantined", "duplicate", "ignored")
            ),
            one.records.silver if one.records else None,
            one.database.source_rows if one.database else None,
        ]
        colour = {"balanced": "green", "in flight": "yellow"}.get(one.verdict, "red")
        shown = ("-" if number is None else f"{number:,}" for number in numbers)
        table.add_row(one.silver, *shown, f"[{colour}]{one.verdict}[/]")
    return table
