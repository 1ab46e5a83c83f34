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
    """A suite whose name is not that of its table."""

    condition = "SUITE_NAME"
    name: str
    expected: str
    primary = 'suite "{name}" is in the file of table "{expected}"'
    hint = 'Write "name": "{expected}", or move the file.'


class EmptySuiteError(LocatedError):
    """A suite that expects nothing, and so would let everything pass."""

    condition = "EMPTY_SUITE"
    suite: str
    primary = 'suite "{suite}" has no expectations'
    hint = "Add an expectation, or remove the file."
