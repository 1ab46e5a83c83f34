"""The position of a change in its source's order, as one text that sorts.

PostgreSQL's log positions are not in commit order, which history needs. So a change sorts by the
end of the transaction before its own, then by its own position, then by its number in the
transaction. A snapshot row has no transaction: it sorts at the position of the snapshot, before a
change there; a row of an incremental or blocking snapshot sorts right after the last commit that
was sent before it. A key
update is two changes at one position, the deletion first.

In the first transaction after a snapshot, Debezium knows of none before it, and a change sorts by
its own position; ``apply.early_changes`` moves it behind the snapshot where this matters. The text
does not tell such a change: where nothing else is written to the log meanwhile, a transaction
begins at the position where the one before it ends.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from spark_jobs.silver.parse.casting import text_at
from spark_jobs.silver.parse.documents import ROOT

POSITION_DIGITS = 20
ORDER_DIGITS = 10
# Kinds of changes, which sort in this order.
SNAPSHOT, DELETION, OTHER = "0", "1", "2"
# The kinds of deletions and other changes that were moved behind a snapshot.
MOVED = {DELETION: "3", OTHER: "4"}
# Where the position and the kind begin, and the length of the whole text.
POSITION_START = POSITION_DIGITS + 1
KIND_START = POSITION_START + POSITION_DIGITS + 1
COMMIT_LENGTH = KIND_START + 2 + ORDER_DIGITS
# Offset that makes all times since year 1 positive, so that they sort as text.
YEAR_ONE_MICROSECONDS = 62_135_596_800_000_000
_LOWEST = -(2**63)
# Positions in the log: of the change, of the end of the transaction before, and read so far.
_LSN, _LAST_COMMIT, _REACHED = "__lsn", "__last_commit", "__reached"
_PAIR = "__positions"


def with_positions(changes: DataFrame, change: str) -> DataFrame:
    """The changes with the columns that ``commit_sequence`` and ``is_early`` read.

    They are columns because they are read several times: each mention of an expression is analyzed
    and optimized in each batch.

    Args:
        changes: Debezium changes.
        change: name of the column with the document.
    """
    document = sf.col(change)
    pair = sf.try_parse_json(text_at(document, f"{ROOT}.source.sequence"))
    lsn = text_at(document, f"{ROOT}.source.lsn").try_cast("bigint")
    first, second = (
        sf.try_variant_get(_PAIR, f"$[{at}]", "string").try_cast("bigint") for at in (0, 1)
    )
    return changes.withColumns({_PAIR: pair, _LSN: lsn}).withColumns(
        {_LAST_COMMIT: first, _REACHED: second}
    )


def commit_sequence(change: Column, operation: Column) -> Column:
    """The sequence of a Debezium change from PostgreSQL; NULL if it has no position.

    Args:
        change: its document, in a frame from ``with_positions``.
        operation: its operation.
    """
    lsn, last_commit, reached = sf.col(_LSN), sf.col(_LAST_COMMIT), sf.col(_REACHED)
    # An incremental snapshot gives only the log position read so far. A change that was written
    # before it and committed after it is newer than the row. The same with a blocking snapshot: the
    # connector has sent all up to the last commit, and sends all that follows after the row.
    read = operation == "r"
    position = sf.coalesce(lsn, sf.when(read & reached.isNotNull(), 0))
    position = sf.when(read & last_commit.isNotNull(), 0).otherwise(position)
    # NULL outside of transactions, as in a snapshot.
    transaction = sf.try_variant_get(change, f"{ROOT}.transaction", "struct<total_order string>")
    order = sf.coalesce(transaction["total_order"].try_cast("bigint"), sf.lit(0))
    return _joined(
        _fixed(sf.coalesce(last_commit, lsn, reached), POSITION_DIGITS),
        _fixed(position, POSITION_DIGITS),
        sf.when(operation == "r", SNAPSHOT).when(operation == "d", DELETION).otherwise(OTHER),
        _fixed(order, ORDER_DIGITS),
    )


def parts(sequence: Column) -> tuple[Column, Column, Column]:
    """Transaction, position and kind in a sequence, as texts.

    Args:
        sequence: from ``commit_sequence``, or one that ends with it.
    """
    commit = sf.right(sequence, sf.lit(COMMIT_LENGTH))
    return (
        sf.substring(commit, 1, POSITION_DIGITS),
        sf.substring(commit, POSITION_START + 1, POSITION_DIGITS),
        sf.substring(commit, KIND_START + 1, 1),
    )


def is_early(operation: Column) -> Column:
    """Whether Debezium knew of no transaction before that of a change; never NULL.

    Args:
        operation: its operation, in a frame from ``with_positions``.
    """
    streamed = sf.coalesce(operation != "r", sf.lit(False))  # noqa: FBT003
    return sf.col(_LAST_COMMIT).isNull() & sf.col(_LSN).isNotNull() & streamed


def commit_time(change: Column) -> Column:
    """When PostgreSQL committed a change, in microseconds if Debezium sends them.

    For a snapshot row, when the snapshot read it; NULL if there is no such time.
    """
    exact = text_at(change, f"{ROOT}.source.ts_us").try_cast("bigint")
    rough = text_at(change, f"{ROOT}.source.ts_ms").try_cast("bigint")
    return sf.timestamp_micros(sf.coalesce(exact, sf.try_multiply(rough, sf.lit(1000))))


def declared_sequence(declared: Column, type_name: str, *, commit: Column) -> Column:
    """The declared time or integer, followed by the source's own order for equal values."""
    if type_name in ("timestamp", "timestamp_ntz", "date"):
        number = sf.unix_micros(declared.cast("timestamp")) + YEAR_ONE_MICROSECONDS
    else:
        number = declared.try_cast("bigint")
    # A minus sorts before each digit, and after it the distance from the lowest integer sorts.
    distance = _fixed(number.bitwiseXOR(sf.lit(_LOWEST)), POSITION_DIGITS - 1)
    below = sf.concat(sf.lit("-"), distance)
    text = sf.when(number < 0, below).otherwise(_fixed(number, POSITION_DIGITS))
    return _joined(text, commit)


def _joined(*parts: Column) -> Column:
    # NULL if any part is NULL.
    separated = [piece for part in parts for piece in (sf.lit("."), part)]
    return sf.concat(*separated[1:])


def _fixed(number: Column, digits: int) -> Column:
    return sf.lpad(number.cast("string"), digits, "0")
