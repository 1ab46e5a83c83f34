"""Expectation suites in Great Expectations' JSON format, checked without importing it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from spark_jobs.definitions.checked import checked
from spark_jobs.definitions.errors import DeclarationSyntaxError, UnexpectedValueError
from spark_jobs.definitions.marked import Marked, Places, read_marked
from spark_jobs.definitions.models import ExpectationFile, SuiteFile
from spark_jobs.definitions.suite_errors import (
    EmptySuiteError,
    ExpectationValueError,
    MissingExpectationArgumentError,
    SuiteNameError,
    UnknownExpectationArgumentError,
    UnknownExpectationError,
)
from spark_jobs.errors import LakehouseError, Location
from spark_jobs.names import Layer, TableName

EXPECTATION_TYPES_FILE = Path(__file__).with_name("expectation_types.json")

# Arguments whose value is a column of the table, or a list of them.
COLUMN_ARGUMENTS = ("column", "column_A", "column_B")
COLUMN_LIST_ARGUMENTS = ("column_list", "column_set")


@dataclass(frozen=True)
class SuiteDefinition:
    """A suite and the table that it judges."""

    table: TableName
    file: str
    # The document as in the file.
    content: dict[str, Any]
    expectations: tuple[ExpectationFile, ...]
    places: Places


@cache
def expectation_types() -> dict[str, dict[str, list[str]]]:
    """The expectations of the pinned Great Expectations, by type.

    Returns:
        for each type the argument names: all as ``arguments``, those it needs as ``required``.
    """
    return json.loads(EXPECTATION_TYPES_FILE.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def read_suite(
    text: str, file: str, table: TableName
) -> tuple[SuiteDefinition | None, list[LakehouseError]]:
    """Read one suite; returns it (None if it does not fit the model) and all problems."""
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        place = Location(file, error.lineno, error.colno)
        return None, [DeclarationSyntaxError("JSON", error.msg, location=place)]
    except (RecursionError, ValueError) as error:
        deep = isinstance(error, RecursionError)
        problem = "it is nested too deeply" if deep else "a number has too many digits"
        return None, [DeclarationSyntaxError("JSON", problem, location=Location(file))]
    subject = f'suite "{table.name}"'
    marked = _marked(text, file, content)
    suite, problems = checked(marked, SuiteFile, subject)
    if suite is None:
        return None, problems
    problems += _check(suite, table, marked.places)
    return SuiteDefinition(table, file, content, suite.expectations, marked.places), problems


def _marked(text: str, file: str, content: Any) -> Marked:
    """The document with locations. JSON is YAML, except for tabs between tokens."""
    try:
        marked = read_marked(text.replace("\t", " "), file)
    except DeclarationSyntaxError:
        return Marked(content, Places(file, 1, {}, {}), ())
    return Marked(content, marked.places, marked.problems)


def _check(suite: SuiteFile, table: TableName, places: Places) -> Iterator[LakehouseError]:
    if suite.name not in (table.name, str(table)):
        yield SuiteNameError(suite.name, table.name, location=places.value_of("name"))
    if not suite.expectations:
        yield EmptySuiteError(suite.name, location=places.of("expectations"))
    for at, expectation in enumerate(suite.expectations):
        yield from _check_expectation(suite.name, expectation, at, places)
        # Those of a silver table are checked by their types.
        if table.layer is Layer.GOLD:
            yield from _check_numbers(suite.name, expectation, at, places)


def _check_expectation(
    suite: str, expectation: ExpectationFile, at: int, places: Places
) -> Iterator[LakehouseError]:
    known = expectation_types()
    kind = expectation.type
    if kind not in known:
        place = places.value_of("expectations", at, "type")
        yield UnknownExpectationError(suite, kind, sorted(known), location=place)
        return
    arguments = known[kind]["arguments"]
    for argument in expectation.kwargs:
        if argument not in arguments:
            place = places.of("expectations", at, "kwargs", argument)
            yield UnknownExpectationArgumentError(suite, kind, argument, arguments, location=place)
        elif (wrong := _no_column(argument, expectation.kwargs[argument])) is not None:
            place = places.value_of("expectations", at, "kwargs", argument)
            what = f'suite "{suite}"'
            yield UnexpectedValueError(what, argument, wrong[0], wrong[1], location=place)
    for argument in known[kind]["required"]:
        if argument not in expectation.kwargs:
            place = places.of("expectations", at, "kwargs")
            yield MissingExpectationArgumentError(suite, kind, argument, location=place)


def _check_numbers(
    suite: str, expectation: ExpectationFile, at: int, places: Places
) -> Iterator[LakehouseError]:
    """Report numbers that JSON does not have, so that PostgreSQL could not store the verdict."""
    for argument, value in expectation.kwargs.items():
        among = value if isinstance(value, list) else [value]
        odd = [one for one in among if isinstance(one, float) and not math.isfinite(one)]
        if odd:
            yield ExpectationValueError(
                suite,
                expectation.type,
                argument,
                f"{odd[0]} is no number",
                "Write a finite number, or leave the argument out.",
                location=places.of("expectations", at, "kwargs", argument),
            )


def _no_column(argument: str, value: Any) -> tuple[str, str] | None:
    """Why a value names no column, and what to write; None if it does, or need not."""
    if isinstance(value, dict):
        # A parameter of the suite.
        return None
    if argument in COLUMN_ARGUMENTS and not isinstance(value, str):
        return f"{value!r} is not a name", "Write the name of a column, in quotes."
    names = value if isinstance(value, list) else [value]
    listed = isinstance(value, list | None) and all(isinstance(one, str | None) for one in names)
    if argument in COLUMN_LIST_ARGUMENTS and not listed:
        return f"{value!r} is not a list of names", 'Write a list of columns: ["a", "b"].'
    return None
