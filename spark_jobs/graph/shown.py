"""Shows a part of the SQL in messages."""

from __future__ import annotations

from sqlglot import exp

from spark_jobs.graph.dialect import to_sql
from spark_jobs.graph.functions import called_name

_WIDTH = 60
_SET_WORDS = {exp.Union: "UNION", exp.Intersect: "INTERSECT", exp.Except: "EXCEPT"}


def shown(node: exp.Expr) -> str:
    """The name of a call, the keyword of a set operation, or the shortened SQL."""
    if isinstance(node, exp.SetOperation):
        return set_word(node)
    name = called_name(node) if isinstance(node, exp.Func) else ""
    text = f"{name.upper()}(…)" if name else to_sql(node)
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"


def set_word(node: exp.SetOperation) -> str:
    """The keyword between two queries, as written."""
    return _SET_WORDS.get(type(node), "a set operation")
