"""Checks the suite of a silver table: whether a batch can be judged by it.

A rule that raises an error on rows would stop the stream, so each value is compared with the type
of its column here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from spark_jobs.definitions.batch_rules import (
    BETWEEN,
    EQUAL,
    GREATER,
    IN_SET,
    LENGTHS_BETWEEN,
    LENGTHS_EQUAL,
    NOT_IN_SET,
    NOT_REGEX,
    NOT_REGEX_LIST,
    REGEX,
    REGEX_LIST,
    ROW_COUNT_BETWEEN,
    ROW_COUNT_EQUAL,
    ROW_RULES,
    RULES,
    UNIQUE,
    UNIQUE_TOGETHER,
    BatchRule,
    batch_rules,
)
from spark_jobs.definitions.errors import KeyNotApplicableError
from spark_jobs.definitions.project import Definitions
from spark_jobs.definitions.suite_errors import (
    ExpectationValueError,
    QuarantineWholeBatchError,
    SilverExpectationArgumentError,
    SilverExpectationError,
)
from spark_jobs.definitions.suites import SuiteDefinition, expectation_types
from spark_jobs.definitions.vocabulary import OnFailure
from spark_jobs.errors import LakehouseError
from spark_jobs.graph.manifest import SilverEntry
from spark_jobs.graph.rule_values import (
    Family,
    family,
    number,
    range_problem,
    regex_problem,
    value_problem,
)
from spark_jobs.names import Layer, TableName

# Argument, problem, hint.
_Problem = tuple[str, str, str]
_PAIRS: Final = ("both_values_are_missing", "either_value_is_missing", "neither")
_LISTS: Final = ("all_values_are_missing", "any_value_is_missing", "never")
_OF_VALUES: Final = frozenset({IN_SET, NOT_IN_SET, BETWEEN})
_OF_TEXT: Final = frozenset(
    {LENGTHS_BETWEEN, LENGTHS_EQUAL, REGEX, NOT_REGEX, REGEX_LIST, NOT_REGEX_LIST}
)
_OF_ONE: Final = _OF_VALUES | _OF_TEXT
_FLAGS: Final = ("strict_min", "strict_max", "or_equal")
_CAST: Final = "Give the column in the SELECT a type that compares, with CAST(... AS TYPE)."


def check_silver_suites(
    definitions: Definitions, silver: Mapping[str, SilverEntry]
) -> Iterator[LakehouseError]:
    """Report expectations by which a batch cannot be judged.

    Args:
        definitions: the project's files.
        silver: the silver tables that compiled; suites of other tables are not checked.
    """
    for name, definition in definitions.silver.items():
        suite = definitions.suites.get(TableName(Layer.SILVER, name))
        header = definition.header
        if suite is None:
            if header and header.on_failure and not _has_file(definitions, name):
                yield KeyNotApplicableError(
                    f'silver table "{name}"',
                    "on_failure",
                    "no suite judges its batches",
                    f"Write expectations/silver/{name}.json, or remove the key.",
                    location=definition.places.of("on_failure"),
                )
        elif name in silver:
            yield from _check_suite(suite, silver[name])


def _has_file(definitions: Definitions, name: str) -> bool:
    # Mistakes in the file are reported elsewhere.
    return (definitions.project_dir / f"expectations/silver/{name}.json").exists()


def _check_suite(suite: SuiteDefinition, entry: SilverEntry) -> Iterator[LakehouseError]:
    types = {column.name: column.type for column in entry.selected}
    known = expectation_types()
    for rule in batch_rules(suite.content):
        if rule.type not in known:
            continue
        place = suite.places.value_of("expectations", rule.position, "type")
        if rule.type not in RULES:
            yield SilverExpectationError(suite.table.name, rule.type, location=place)
            continue
        kwargs = "expectations", rule.position, "kwargs"
        served = RULES[rule.type]
        for argument in rule.kwargs:
            if argument not in served and argument in known[rule.type]["arguments"]:
                yield SilverExpectationArgumentError(
                    suite.table.name,
                    rule.type,
                    argument,
                    served,
                    location=suite.places.of(*kwargs, argument),
                )
        for argument, problem, hint in _value_problems(rule, types):
            where = suite.places.value_of(*kwargs, argument)
            yield ExpectationValueError(
                suite.table.name, rule.type, argument, problem, hint, location=where
            )
        if entry.on_failure is OnFailure.QUARANTINE and rule.critical and not rule.of_rows:
            what = f'"mostly" of {rule.type}' if rule.type in ROW_RULES else rule.type
            yield QuarantineWholeBatchError(suite.table.name, what, entry.file, location=place)


def _value_problems(rule: BatchRule, types: Mapping[str, str]) -> Iterator[_Problem]:
    """Values that do not fit; columns that the table lacks are reported elsewhere."""
    kwargs = rule.kwargs
    for flag in _FLAGS:
        if flag in kwargs and not isinstance(kwargs[flag], bool):
            yield flag, f"{kwargs[flag]!r} is not true or false", "Write true or false."
    share = kwargs.get("mostly", 1)
    if not number(share) or not 0 <= share <= 1:
        yield "mostly", f"{share!r} is not a share", "Write a number from 0 to 1."
    kinds = {name: types[name] for name in rule.columns if name in types}
    if len(kinds) < len(set(rule.columns)):
        return
    match rule.type:
        case one if one in _OF_ONE:
            yield from _of_one(rule, kinds[rule.columns[0]])
        case one if one in (GREATER, EQUAL):
            yield from _pair(rule, kinds)
        case one if one in (UNIQUE, UNIQUE_TOGETHER):
            yield from _unique(rule, kinds)
        case one if one == ROW_COUNT_BETWEEN:
            yield from _bounds(rule, "bigint", whole=True)
        case one if one == ROW_COUNT_EQUAL:
            yield from _whole(rule, "value")


def _of_one(rule: BatchRule, kind: str) -> Iterator[_Problem]:
    """A rule that compares or reads the values of one column."""
    if family(kind) is Family.UNKNOWN:
        yield "column", "only Spark knows the type of the column", _CAST
    elif rule.type in _OF_VALUES:
        yield from _compared(rule, kind)
    else:
        yield from _of_text(rule, kind)


def _compared(rule: BatchRule, kind: str) -> Iterator[_Problem]:
    if family(kind) in (Family.BYTES, Family.NESTED):
        yield "column", f"the column is {kind}, which does not compare", _CAST
        return
    if rule.type == BETWEEN:
        if family(kind) in (Family.FLAG, Family.TEXT):
            # Great Expectations takes numbers and times as bounds.
            yield "column", f"the column is {kind}, which has no bounds", f"Use {IN_SET}."
            return
        yield from _bounds(rule, kind)
        return
    values = rule.kwargs.get("value_set")
    if not isinstance(values, list) or not values:
        yield "value_set", f"{values!r} is not a list of values", "Write a list with one value."
        return
    for value in values:
        if problem := value_problem(value, kind):
            yield "value_set", problem, f"The column is {kind}; NULL passes anyway."
            return


def _bounds(rule: BatchRule, kind: str, *, whole: bool = False) -> Iterator[_Problem]:
    bounds = {
        name: value
        for name in ("min_value", "max_value")
        if (value := rule.kwargs.get(name)) is not None
    }
    if not bounds:
        yield "min_value", "there is no bound", 'Add "min_value", "max_value" or both.'
    for name, value in bounds.items():
        if whole and (problems := list(_whole(rule, name))):
            yield from problems
            return
        if problem := value_problem(value, kind):
            yield name, problem, f"The column is {kind}."
            return
    if len(bounds) > 1 and (problem := range_problem(*bounds.values())):
        yield "min_value", problem, "Write a lower bound and an upper one, both in one time zone."


def _whole(rule: BatchRule, name: str) -> Iterator[_Problem]:
    value = rule.kwargs.get(name)
    if not number(value) or not float(value or 0).is_integer():
        yield name, f"{value!r} is not a whole number", "Write a whole number."


def _of_text(rule: BatchRule, kind: str) -> Iterator[_Problem]:
    lengths = rule.type in (LENGTHS_BETWEEN, LENGTHS_EQUAL)
    if family(kind) is not Family.TEXT and not (lengths and family(kind) is Family.BYTES):
        yield "column", f"the column is {kind}", "Only text has characters to check."
        return
    match rule.type:
        case one if one == LENGTHS_EQUAL:
            yield from _whole(rule, "value")
        case one if one == LENGTHS_BETWEEN:
            yield from _bounds(rule, "bigint", whole=True)
        case one if one in (REGEX, NOT_REGEX):
            yield from _regexes("regex", [rule.kwargs.get("regex")])
        case _:
            told = rule.kwargs.get("regex_list")
            if not isinstance(told, list) or not told:
                hint = "Write a list of regular expressions."
                yield "regex_list", f"{told!r} is not a list of texts", hint
                return
            yield from _regexes("regex_list", told)
            if rule.kwargs.get("match_on", "any") not in ("any", "all"):
                problem = f"{rule.kwargs['match_on']!r} is neither any nor all"
                yield "match_on", problem, 'Write "any" or "all".'


def _regexes(argument: str, values: list[Any]) -> Iterator[_Problem]:
    for value in values:
        if problem := regex_problem(value):
            yield argument, problem, "Write a regular expression of Java."


def _pair(rule: BatchRule, kinds: Mapping[str, str]) -> Iterator[_Problem]:
    yield from _ignored(rule, _PAIRS)
    families = [family(kind) for kind in kinds.values()]
    comparable = {Family.NUMBER, Family.TEXT, Family.DATE, Family.TIME}
    if rule.type == EQUAL:
        comparable.add(Family.FLAG)
    if len(set(families)) > 1 or not comparable.issuperset(families):
        shown = " and ".join(kind or "of a type that only Spark knows" for kind in kinds.values())
        yield "column_B", f"the columns are {shown}", _CAST


def _unique(rule: BatchRule, kinds: Mapping[str, str]) -> Iterator[_Problem]:
    if rule.type == UNIQUE_TOGETHER:
        yield from _ignored(rule, _LISTS)
    for name, kind in kinds.items():
        if family(kind) in (Family.NESTED, Family.UNKNOWN):
            argument = "column" if rule.type == UNIQUE else "column_list"
            shown = kind or "of a type that only Spark knows"
            yield argument, f"column {name!r} is {shown}", _CAST


def _ignored(rule: BatchRule, known: tuple[str, ...]) -> Iterator[_Problem]:
    told = rule.kwargs.get("ignore_row_if", known[0])
    if told not in known:
        words = ", ".join(known)
        yield "ignore_row_if", f"{told!r} is not one of {words}", f"Write {known[0]}."
