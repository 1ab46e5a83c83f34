"""Conditions of expectation suites."""

from __future__ import annotations

from collections.abc import Sequence

from spark_jobs.errors import LocatedError


class UnknownExpectationError(LocatedError):
    """An expectation type that the pinned Great Expectations does not have."""

    condition = "UNKNOWN_EXPECTATION"
    suite: str
    type: str
    known: Sequence[str]
    misspelt = "type"
    primary = 'suite "{suite}" has an unknown expectation "{type}"'
    hint = (
        "The gallery of Great Expectations lists all expectations; custom ones are not supported."
    )


class UnknownExpectationArgumentError(LocatedError):
    """An argument that the expectation does not take."""

    condition = "UNKNOWN_EXPECTATION_ARGUMENT"
    suite: str
    type: str
    argument: str
    known: Sequence[str]
    misspelt = "argument"
    primary = 'suite "{suite}": {type} takes no argument "{argument}"'
    hint = "It takes {known}."


class MissingExpectationArgumentError(LocatedError):
    """An argument that the expectation needs."""

    condition = "MISSING_EXPECTATION_ARGUMENT"
    suite: str
    type: str
    argument: str
    primary = 'suite "{suite}": {type} needs the argument "{argument}"'
    hint = 'Add "{argument}" to its "kwargs".'


class SuiteNameError(LocatedError):
    """A suite whose name differs from its table's."""

    condition = "SUITE_NAME"
    name: str
    expected: str
    primary = 'suite "{name}" is in the file of table "{expected}"'
    hint = 'Write "name": "{expected}", or move the file.'


class EmptySuiteError(LocatedError):
    """A suite without expectations, which would pass always."""

    condition = "EMPTY_SUITE"
    suite: str
    primary = 'suite "{suite}" has no expectations'
    hint = "Add an expectation, or remove the file."


class SilverExpectationError(LocatedError):
    """An expectation that needs more than the rows of one batch, or reads more than a column."""

    condition = "SILVER_EXPECTATION"
    suite: str
    type: str
    primary = 'suite "{suite}": a silver table has no {type}'
    hint = (
        "docs/silver.md lists the expectations that judge a batch. Put this one into the suite of "
        "a gold view that reads the table."
    )


class SilverExpectationArgumentError(LocatedError):
    """An argument of Great Expectations that silver tables do not support."""

    condition = "SILVER_EXPECTATION_ARGUMENT"
    suite: str
    type: str
    argument: str
    known: Sequence[str]
    primary = 'suite "{suite}": {type} of a silver table takes no "{argument}"'
    hint = "It takes {known} there."


class ExpectationValueError(LocatedError):
    """An argument's value, or a column, with which the expectation cannot be checked."""

    condition = "EXPECTATION_VALUE"
    suite: str
    type: str
    argument: str
    problem: str
    hint: str
    primary = 'suite "{suite}": "{argument}" of {type} does not fit: {problem}'


class QuarantineWholeBatchError(LocatedError):
    """An expectation that no single row fails, in a table whose failing rows go to quarantine."""

    condition = "QUARANTINE_WHOLE_BATCH"
    suite: str
    what: str
    file: str
    primary = 'suite "{suite}": {what} judges a batch as a whole, so no row can go to quarantine'
    hint = (
        'Write "severity": "warning" in the expectation; or write "on_failure: hold" in {file}, '
        "which stops the table before the batch."
    )
