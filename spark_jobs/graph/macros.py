"""Reads macros: ``CREATE MACRO name(parameter, ...) AS expression``, one in a file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import SqlglotError

from spark_jobs.definitions.files import DeclaredFile
from spark_jobs.errors import Location
from spark_jobs.graph.dialect import dialect
from spark_jobs.graph.functions import is_known
from spark_jobs.graph.parsing import SqlText, plain_sql
from spark_jobs.graph.reuse_errors import MacroError

_HEAD = re.compile(r"\s*CREATE\s+MACRO\s+(\w+)\s*\(([^()]*)\)\s*AS\b", re.IGNORECASE)
_PARAMETER = re.compile(r"[a-z_][a-z0-9_]*", re.IGNORECASE)


@dataclass(frozen=True)
class Macro:
    """An expression with parameters.

    Attributes:
        parameters: names in lower case.
        body: the expression without comments, at its place in the file.
    """

    name: str
    file: str
    parameters: tuple[str, ...]
    body: str


def read_macro(file: DeclaredFile) -> Macro:
    """Parse ``CREATE MACRO name(parameter, ...) AS expression``.

    Raises:
        MacroError: the file contains something else.
        SqlSyntaxError: it is not valid SQL.
    """
    source = SqlText(file.file, file.text)
    plain = plain_sql(source)
    head = _HEAD.match(plain)
    if head is None:
        raise MacroError(file.name, "it does not begin as one", location=source.first())
    if head[1].lower() != file.name:
        problem = f"the file is {file.name}.sql, the macro is {head[1]!r}"
        raise MacroError(file.name, problem, location=source.at(head.start(1)))
    if is_known(file.name):
        problem = "Spark has a function of that name"
        raise MacroError(file.name, problem, location=source.at(head.start(1)))
    names = [one.strip().lower() for one in head[2].split(",")] if head[2].strip() else []
    if len({*names}) < len(names) or not all(map(_PARAMETER.fullmatch, names)):
        problem = f"({head[2].strip()}) is not a list of parameters"
        raise MacroError(file.name, problem, location=source.at(head.start(2)))
    body = plain[head.end() :].rstrip().rstrip(";")
    place = source.at(head.end() + len(body) - len(body.lstrip()))
    _check_body(file.name, names, one_line(body), place)
    blank = re.sub(r"[^\n]", " ", plain[: head.end()])
    return Macro(file.name, file.file, tuple(names), blank + body)


def _check_body(name: str, parameters: Sequence[str], body: str, place: Location) -> None:
    """Check that the body is one expression over the parameters."""
    try:
        trees = dialect().parse(re.sub(r"@(\w+)", r"'\1'", body))
    except SqlglotError as error:
        # The parser names its own classes, and places in the text of one line.
        raise MacroError(name, "its body is not an expression", location=place) from error
    tree = trees[0] if len(trees) == 1 else None
    if tree is None or isinstance(tree, exp.Query | exp.Command | exp.DDL):
        raise MacroError(name, "its body is not an expression", location=place)
    for column in tree.find_all(exp.Column):
        # The field of a struct parameter looks like a table's column.
        first = column.parts[0].name.lower()
        if first not in parameters and not column.find_ancestor(exp.Lambda):
            problem = f"its body names {column.parts[0].name!r}, which is not a parameter"
            raise MacroError(name, problem, location=place)


def one_line(text: str) -> str:
    """The text on one line, stripped."""
    return re.sub(r"[\r\n]", " ", text).strip()
