"""The error of a call in a place where Spark does not take it."""

from __future__ import annotations

from sqlglot import exp

from spark_jobs.graph.parsing import SqlText
from spark_jobs.graph.semantic_errors import MisplacedAggregateError
from spark_jobs.graph.shown import shown


def misplaced(
    call: exp.Func | exp.Window, clause: str, source: SqlText, subject: str, *, hint: str
) -> MisplacedAggregateError:
    """The error of an aggregate or a window function.

    Args:
        call: the aggregate, or the function with its OVER.
        clause: what the message says it is not allowed in.
        source: the text of the query, for the location.
        subject: name of the declared table in messages.
        hint: what to write instead.
    """
    name = f"{shown(call.this)} OVER" if isinstance(call, exp.Window) else shown(call)
    return MisplacedAggregateError(subject, name, clause, hint=hint, location=source.of(call))
