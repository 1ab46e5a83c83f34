"""Conditions of expectation suites."""

from __future__ import annotations

from collections.abc import Sequence

from spark_jobs.errors import LakehouseError, Location, did_you_mean


class UnknownExpectationError(LakehouseError):
    """An expectation type that the pinned Great Expectations does not have."""

    condition = "UNKNOWN_EXPECTATION"

    def __init__(self, suite: str, kind: str, known: Sequence[str], *, location: Location) -> None:
        self.type = kind
        super().__init__(
            f'suite "{suite}" has an unknown expectation "{kind}"',
            hint=did_you_mean(kind, known)
            or "Its gallery lists what Great Expectations has; custom ones are not read.",
            location=location,
        )


class UnknownExpectationArgumentError(LakehouseError):
    """An argument that the expectation does not take."""

    condition = "UNKNOWN_EXPECTATION_ARGUMENT"

    def __init__(
        self, suite: str, kind: str, argument: str, known: Sequence[str], *, location: Location
    ) -> None:
        self.type = kind
        self.argument = argument
        super().__init__(
            f'suite "{suite}": {kind} takes no argument "{argument}"',
            hint=did_you_mean(argument, known) or f"It takes {', '.join(known)}.",
            location=location,
        )


class MissingExpectationArgumentError(LakehouseError):
    """An argument that the expectation needs."""

    condition = "MISSING_EXPECTATION_ARGUMENT"

    def __init__(self, suite: str, kind: str, argument: str, *, location: Location) -> None:
        self.type = kind
        self.argument = argument
        super().__init__(
            f'suite "{suite}": {kind} needs the argument "{argument}"',
            hint=f'Add "{argument}" to its "kwargs".',
            location=location,
        )


class SuiteNameError(LakehouseError):
    """A suite whose name is not that of its table."""

    condition = "SUITE_NAME"

    def __init__(self, name: str, expected: str, *, location: Location) -> None:
        self.name = name
        self.expected = expected
        super().__init__(
            f'suite "{name}" lies in the file of table "{expected}"',
            hint=f'Write "name": "{expected}", or move the file.',
            location=location,
        )


class EmptySuiteError(LakehouseError):
    """A suite that expects nothing, and so would let everything pass."""

    condition = "EMPTY_SUITE"

    def __init__(self, suite: str, *, location: Location) -> None:
        super().__init__(
            f'suite "{suite}" has no expectations',
            hint="Add an expectation, or remove the file.",
            location=location,
        )
