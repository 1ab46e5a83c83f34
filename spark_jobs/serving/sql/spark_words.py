"""Converts Spark's errors about queries to one sentence, without plans and Java stack traces."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from spark_jobs.errors import LakehouseError, did_you_mean
from spark_jobs.graph.functions import spark_functions
from spark_jobs.graph.query import QueryNotReadOnlyError
from spark_jobs.storage.guard import REFUSED

# Conditions of Spark and Delta for a missing version, or deleted files.
_GONE = (
    "DELTA_VERSION_NOT_FOUND",
    "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
    "DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION",
    "DELTA_LOG_FILE_NOT_FOUND",
    "DELTA_FILE_NOT_FOUND",
    "FAILED_READ_FILE.FILE_NOT_EXIST",
)
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*)\]\s*")
# The sentence is followed by an SQLSTATE, a position, a plan and a stack trace.
_TAIL = re.compile(
    r"\s*(?:SQLSTATE: ?\w{5}.*|;?\s*line \d+,? pos \d+.*|\n\s*at [\w.$]+\(.*"
    r"|\n\s*JVM stacktrace:.*|\n== .*|;?\s*\n\s*['+!:*].*)",
    re.DOTALL,
)
_CLASS = re.compile(r"^(?:[a-z]\w*\.)+[A-Z]\w*(?:Exception|Error): ")
_SUBJECT = re.compile(r"\b(?:with name|function|routine) (`[^\s]+`)")
_SUGGESTED = re.compile(r"Did you mean one of the following\? \[([^\]]*)\]")
_LONGEST = 400


class QueryRejectedError(LakehouseError):
    """Spark rejects a query, or fails while it runs.

    Attributes:
        spark_condition: Spark's name of the condition, or "".
        cause: one sentence.
    """

    condition = "QUERY_REJECTED"
    spark_condition: str
    cause: str
    hint: str = ""
    primary = "the query failed: {sentence}"

    @property
    def sentence(self) -> str:
        """The cause without a full stop, with Spark's condition."""
        named = f" ({self.spark_condition})" if self.spark_condition else ""
        return self.cause.rstrip(".") + named


class QueryColumnUnknownError(LakehouseError):
    """A query refers to a column that is not in scope."""

    condition = "QUERY_COLUMN_UNKNOWN"
    column: str
    known: Sequence[str]
    primary = 'no table in this place of the query has a column "{column}"'
    hint = "{remedy}"

    @property
    def remedy(self) -> str:
        """The closest column, and other suggestions of Spark."""
        if not self.known:
            return "See the columns of a table with '\\d TABLE' in tidemark shell."
        plain = self.column.rpartition(".")[2]
        near = did_you_mean(plain, [one.rpartition(".")[2] for one in self.known])
        others = f"Columns there are {', '.join(self.known)}."
        return f"{near} {others}" if near else others


class QueryFunctionUnknownError(LakehouseError):
    """A query calls a function that does not exist in Spark."""

    condition = "QUERY_FUNCTION_UNKNOWN"
    function: str
    known: Sequence[str]
    misspelt = "function"
    primary = 'Spark has no function "{function}"'
    hint = "https://spark.apache.org/docs/latest/api/sql/ lists the functions of Spark."


class VersionNotKeptError(LakehouseError):
    """A query reads a table version that does not exist, or whose files are deleted."""

    condition = "VERSION_NOT_KEPT"
    cause: str
    primary = "the query reads a version of a table that no longer exists"
    detail = "{cause}"
    hint = (
        "Older versions are kept for maintenance.retention_days, at most the newest "
        "maintenance.log_commits of them. Read a newer one; without VERSION AS OF and TIMESTAMP AS "
        "OF a query reads the newest."
    )


@dataclass(frozen=True)
class Said:
    """Spark's condition, or "", and the message's first sentence."""

    condition: str
    sentence: str


def query_error(messages: Sequence[str]) -> LakehouseError:
    """The error for users.

    Args:
        messages: messages of the error and its causes, innermost last.
    """
    # Prefer a message that begins with a condition of Spark.
    told = next((one for one in messages if _CONDITION.match(one)), messages[-1])
    told = next((one for one in (told, *messages) if REFUSED in one), told)
    if REFUSED in told:
        reason = told.partition(REFUSED)[2].splitlines()[0]
        # The policy allows only known functions, so it also refuses misspelt ones.
        called = _CALLED.match(reason)
        functions = spark_functions()
        if (
            called is not None
            and called[1] not in functions
            and did_you_mean(called[1], [*functions])
        ):
            return QueryFunctionUnknownError(called[1], sorted(functions))
        return QueryNotReadOnlyError(reason)
    found = said(told)
    if any(f"[{condition}]" in one for condition in _GONE for one in messages):
        return VersionNotKeptError(found.sentence)
    subject = _SUBJECT.search(told)
    name = "" if subject is None else subject[1].replace("`", "")
    match found.condition.partition(".")[0]:
        case "UNRESOLVED_COLUMN" | "UNRESOLVED_FIELD" if name:
            return QueryColumnUnknownError(name, _suggested(told))
        case "UNRESOLVED_ROUTINE" if name:
            return QueryFunctionUnknownError(name.rpartition(".")[2], sorted(spark_functions()))
        case condition:
            return QueryRejectedError(
                found.condition, found.sentence, hint=_HINTS.get(condition, "")
            )


def said(message: str) -> Said:
    r"""Parse a message of Spark, without what follows the sentence.

    >>> said("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n== SQL (line 1) ==\n1/0")
    Said(condition='DIVIDE_BY_ZERO', sentence='Division by zero.')
    >>> said("java.io.IOException: disk full\n\tat a.B.c(B.java:1)")
    Said(condition='', sentence='disk full')
    """
    match = _CONDITION.search(message)
    text = message[match.end() :] if match else message.strip()
    sentence = " ".join(_TAIL.sub("", _CLASS.sub("", text), count=1).split())
    if len(sentence) > _LONGEST:
        sentence = sentence[:_LONGEST].rsplit(" ", 1)[0] + " ..."
    return Said(match[1] if match else "", sentence or "Spark gives no reason")


_CALLED = re.compile(r"(\w+) may not be called$")
_HINTS = {
    "CAST_INVALID_INPUT": "Use try_cast, which returns NULL for values that cannot be cast.",
    "DIVIDE_BY_ZERO": "Use try_divide, which gives NULL where the divisor is zero.",
    "AMBIGUOUS_REFERENCE": "Write the alias of its table before the column.",
    "MISSING_AGGREGATION": "Add the column to GROUP BY, or aggregate it.",
    "DATATYPE_MISMATCH": "Convert one side with CAST.",
}


def _suggested(message: str) -> list[str]:
    found = _SUGGESTED.search(message)
    return [] if found is None else found[1].replace("`", "").split(", ")
