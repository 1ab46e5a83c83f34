"""Answers SHOW and DESCRIBE from the declarations, without Spark."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final

import pyarrow as pa

from spark_jobs.errors import LakehouseError
from spark_jobs.graph.lexemes import LexicalError, without_comments
from spark_jobs.serving.sql.session import QuerySession

_NAME: Final = r"`?\w+`?(?:\.`?\w+`?)?"
_SHOW_SCHEMAS: Final = re.compile(r"SHOW\s+(?:SCHEMAS|DATABASES)", re.IGNORECASE)
_SHOW_TABLES: Final = re.compile(
    rf"SHOW\s+(?:TABLES|VIEWS)(?:\s+(?:IN|FROM)\s+(?P<schema>{_NAME}))?"
    r"(?:\s+(?:LIKE\s+)?'(?P<like>[^']*)')?",
    re.IGNORECASE,
)
_DESCRIBE: Final = re.compile(
    rf"(?:DESC(?:RIBE)?(?:\s+TABLE)?(?:\s+(?:EXTENDED|FORMATTED))?|SHOW\s+COLUMNS\s+(?:IN|FROM))"
    rf"\s+(?P<table>{_NAME})",
    re.IGNORECASE,
)
_LOOKS: Final = re.compile(r"(?:SHOW|DESC|DESCRIBE)\b", re.IGNORECASE)


class CatalogQuestionError(LakehouseError):
    """A form of SHOW or DESCRIBE that is not supported."""

    condition = "CATALOG_QUESTION"
    text: str
    primary = "this form of SHOW or DESCRIBE is not supported: {text}"
    hint = "Write SHOW SCHEMAS, SHOW TABLES [IN layer] [LIKE 'pattern'] or DESCRIBE layer.name."


def catalog_answer(session: QuerySession, text: str) -> pa.Table | None:
    """The result of SHOW or DESCRIBE; None for other statements.

    Returns:
        ``schema``; ``table`` and ``description``; or ``column``, ``type`` and ``description``.

    Raises:
        TableUnknownError: the described table cannot be queried.
        CatalogQuestionError: the form is not supported.
    """
    try:
        statement = " ".join(without_comments(text).split()).rstrip("; ")
    except LexicalError:
        return None
    if not _LOOKS.match(statement):
        return None
    if _SHOW_SCHEMAS.fullmatch(statement):
        schemas = sorted({name.partition(".")[0] for name, _ in session.tables()})
        return _rows(("schema",), [(one,) for one in schemas])
    if match := _SHOW_TABLES.fullmatch(statement):
        return _rows(("table", "description"), _tables(session, match["schema"], match["like"]))
    if match := _DESCRIBE.fullmatch(statement):
        columns = session.columns(match["table"].replace("`", "").lower())
        told = [(one.name, one.type, one.description) for one in columns]
        return _rows(("column", "type", "description"), told)
    raise CatalogQuestionError(statement)


def _tables(session: QuerySession, schema: str | None, like: str | None) -> list[tuple[str, ...]]:
    """Tables of a schema whose names match one of the patterns separated by bars, as in Spark."""
    wanted = "" if schema is None else schema.replace("`", "").lower()
    # Both % and * are wildcards.
    patterns = [one.strip().lower().replace("%", "*") for one in (like or "*").split("|")]
    found: list[tuple[str, ...]] = []
    for name, description in session.tables():
        layer, _, table = name.partition(".")
        fits = any(fnmatchcase(one, pattern) for one in (table, name) for pattern in patterns)
        if fits and wanted in {"", layer}:
            found.append((name, description))
    return found


def _rows(headings: Sequence[str], rows: Sequence[tuple[str, ...]]) -> pa.Table:
    columns = [[row[at] for row in rows] for at in range(len(headings))]
    return pa.table([pa.array(one, pa.string()) for one in columns], names=list(headings))
