from __future__ import annotations

import pytest

from spark_jobs.errors import LakehouseError
from spark_jobs.graph.query import QueryNotReadOnlyError
from spark_jobs.serving.sql.spark_words import (
    QueryColumnUnknownError,
    QueryFunctionUnknownError,
    QueryRejectedError,
    VersionNotKeptError,
    query_error,
)
from spark_jobs.storage.guard import REFUSED

PLAN = (
    "\n'Project ['amounts]\n+- SubqueryAlias o\n   +- Relation ["
    + "order_id#1L," * 900
    + "] parquet"
)
STACK = "\n\nJVM stacktrace:\n" + "\tat org.apache.spark.sql.Dataset.of(Dataset.scala:1)\n" * 90
COLUMN = (
    "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with name "
    "`o`.`amounts` cannot be resolved. Did you mean one of the following? [`o`.`amount`, "
    "`o`.`order_id`]. SQLSTATE: 42703; line 1 pos 7;"
)
DIVIDED = (
    "[DIVIDE_BY_ZERO] Division by zero. Use `try_divide` to tolerate it. SQLSTATE: 22012\n"
    "== SQL (line 1, position 8) ==\nSELECT 1/0"
)
CAST = (
    '[CAST_INVALID_INPUT] The value \'x\' of the type "STRING" cannot be cast to "INT". '
    "SQLSTATE: 22018"
)


def of(*messages: str) -> LakehouseError:
    return query_error(messages)


def test_a_misspelt_column() -> None:
    error = of(COLUMN + PLAN + STACK)
    assert isinstance(error, QueryColumnUnknownError)
    assert (error.column, error.known) == ("o.amounts", ("o.amount", "o.order_id"))
    assert error.render().splitlines() == [
        'no table in this place of the query has a column "o.amounts" [QUERY_COLUMN_UNKNOWN]',
        '  Hint: Did you mean "amount"? Columns there are o.amount, o.order_id.',
    ]


def test_a_column_of_nothing() -> None:
    error = of(
        "[UNRESOLVED_COLUMN.WITHOUT_SUGGESTION] A column, variable, or function parameter with "
        "name `x` cannot be resolved. SQLSTATE: 42703; line 1 pos 7;"
    )
    assert isinstance(error, QueryColumnUnknownError)
    assert not error.known
    assert error.hint


def test_a_misspelt_function() -> None:
    error = of(
        "[UNRESOLVED_ROUTINE] Cannot resolve routine `date_trunk` on search path "
        "[`system`.`builtin`]. SQLSTATE: 42883; line 1 pos 7" + PLAN
    )
    assert isinstance(error, QueryFunctionUnknownError)
    assert error.hint == 'Did you mean "date_trunc"?'


@pytest.mark.parametrize(
    ("messages", "condition", "cause"),
    [
        (
            [DIVIDED],
            "DIVIDE_BY_ZERO",
            "Division by zero. Use `try_divide` to tolerate it.",
        ),
        (
            ["An error occurred while calling o12.toArrow.", "Job aborted", CAST + STACK],
            "CAST_INVALID_INPUT",
            "The value 'x' of the type \"STRING\" cannot be cast to \"INT\".",
        ),
        (["java.lang.OutOfMemoryError: Java heap space" + STACK], "", "Java heap space"),
        ([""], "", "Spark gives no reason"),
    ],
)  # fmt: skip
def test_one_sentence_is_left(messages: list[str], condition: str, cause: str) -> None:
    error = of(*messages)
    assert isinstance(error, QueryRejectedError)
    assert (error.spark_condition, error.cause) == (condition, cause)
    assert "\n" not in error.primary


def test_a_text_without_end_is_cut() -> None:
    error = of("[X] " + "words " * 10_000)
    assert len(error.render()) < 600


def test_versions_that_are_gone_and_what_is_refused_keep_their_errors() -> None:
    gone = of("[DELTA_VERSION_NOT_FOUND] Cannot time travel to version 9. SQLSTATE: 22003")
    assert isinstance(gone, VersionNotKeptError)
    assert gone.detail == "Cannot time travel to version 9."
    assert isinstance(of(f"[A] x {REFUSED}it writes\nmore"), QueryNotReadOnlyError)
