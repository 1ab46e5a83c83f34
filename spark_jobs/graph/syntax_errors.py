"""Error conditions of SQL that Spark or this reader does not read."""

from __future__ import annotations

from dataclasses import field

from spark_jobs.errors import LocatedError
from spark_jobs.graph.errors import SqlSyntaxError


class ForeignClauseError(SqlSyntaxError):
    """A clause of another database, which the parser reads."""

    condition = "FOREIGN_CLAUSE"
    primary = "Spark has no {problem}"
    hint = "Another database has it. Write the query with the clauses of Spark SQL."


class PipeSyntaxError(SqlSyntaxError):
    """Steps behind ``|>``, which the parser adds to the SELECT before them."""

    condition = "PIPE_SYNTAX"
    problem: str = field(default="|>", init=False)
    primary = "a query of steps, {problem}, is not read here"
    hint = "Write each step around the one before it, as a subquery or in WITH."


class UnboundParameterError(LocatedError):
    """A parameter like ``:day``, which nobody gives a value."""

    condition = "UNBOUND_PARAMETER"
    parameter: str
    primary = "the query has a parameter, {parameter}"
    hint = "A declaration has no arguments. Write the value, or read it from a seed."
