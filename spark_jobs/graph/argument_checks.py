"""Checks the number of arguments of function calls."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from spark_jobs.graph.function_arguments import function_arguments
from spark_jobs.graph.parsing import SqlText
from spark_jobs.graph.semantic_errors import FunctionArgumentsError
from spark_jobs.graph.written_calls import written_calls


def check_arguments(tree: exp.Query, source: SqlText) -> Iterator[FunctionArgumentsError]:
    """Report calls with too few or too many arguments in a parsed query."""
    for call in written_calls(tree):
        takes = function_arguments(call.name)
        if takes is not None and call.count is not None and not takes.allow(call.count):
            place = source.at(call.start)
            yield FunctionArgumentsError(call.name, call.count, takes, location=place)
