"""Builds a declared suite expectation by expectation, and refuses what would not be checked.

Great Expectations itself drops unknown expectations with only a log line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from spark_jobs.definitions.vocabulary import Severity
from spark_jobs.quality.errors import RefusedExpectation, SuiteRefusedError
from spark_jobs.quality.verdict import JsonObject

# Meta key that links a result to its declared expectation; results come in any order.
POSITION: Final = "__position"

COLUMN_KWARGS: Final = ("column", "column_A", "column_B", "column_list", "column_set")


@dataclass(frozen=True)
class DeclaredExpectation:
    """An expectation as declared in the suite's file."""

    position: int
    type: str
    kwargs: JsonObject
    severity: Severity
    note: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """Its columns; empty for a rule about the table."""
        named: list[str] = []
        for key in COLUMN_KWARGS:
            value = self.kwargs.get(key)
            if isinstance(value, list | tuple | set):
                named += map(str, value)
            elif value is not None:
                named.append(str(value))
        return tuple(named)

    @property
    def column(self) -> str | None:
        """Its column or columns, as text."""
        return ", ".join(self.columns) or None


def read_suite(suite: Mapping[str, Any], *, table: str) -> list[DeclaredExpectation]:
    """The suite's expectations.

    Raises:
        SuiteRefusedError: an entry has no type, or an unknown severity.
    """
    declared, refused = [], []
    for position, entry in enumerate(suite.get("expectations") or ()):
        kind, severity = entry.get("type"), entry.get("severity") or Severity.CRITICAL
        if not isinstance(kind, str) or not kind:
            refused.append(RefusedExpectation(position, str(kind), "it has no type"))
        elif severity not in set(Severity):
            problem = f"its severity {severity!r} is none of {', '.join(Severity)}"
            refused.append(RefusedExpectation(position, kind, problem))
        else:
            kwargs = dict(entry.get("kwargs") or {})
            note = _note(entry)
            declared.append(DeclaredExpectation(position, kind, kwargs, Severity(severity), note))
    if refused:
        raise SuiteRefusedError(suite_name(suite), table=table, refused=refused)
    return declared


def _note(entry: Mapping[str, Any]) -> str:
    """The author's note, where Great Expectations stores notes."""
    notes = (entry.get("meta") or {}).get("notes") or entry.get("description") or ""
    if isinstance(notes, Mapping):
        notes = notes.get("content") or ""
    return " ".join(notes) if isinstance(notes, list) else str(notes)


def suite_name(suite: Mapping[str, Any]) -> str:
    """The suite's name, for messages."""
    return str(suite.get("name") or "unnamed")


def build_suite(
    library: Any, name: str, *, declared: Sequence[DeclaredExpectation], table: str
) -> Any:
    """The suite in Great Expectations, with exactly the declared expectations.

    Raises:
        SuiteRefusedError: an expectation is unknown, was dropped, or its arguments are invalid.
    """
    built, refused = [], []
    for one in declared:
        try:
            built.append(_build(one))
        except Exception as error:  # noqa: BLE001 - each kind of error means the same here
            refused.append(RefusedExpectation(one.position, one.type, first_line(error)))
    if refused:
        raise SuiteRefusedError(name, table=table, refused=refused)
    suite = library.ExpectationSuite(name=name, expectations=built)
    kept = {expectation.meta[POSITION] for expectation in suite.expectations}
    dropped = [one for one in declared if one.position not in kept]
    if dropped or len(suite.expectations) != len(declared):
        raise SuiteRefusedError(
            name,
            table=table,
            refused=[
                RefusedExpectation(one.position, one.type, "Great Expectations dropped it")
                for one in dropped or declared
            ],
        )
    return suite


def _build(one: DeclaredExpectation) -> Any:
    from great_expectations.expectations.expectation_configuration import (  # noqa: PLC0415
        ExpectationConfiguration,
    )

    return ExpectationConfiguration(
        type=one.type,
        kwargs=dict(one.kwargs),
        severity=one.severity.value,
        meta={POSITION: one.position},
    ).to_domain_obj()


def first_line(error: BaseException | str) -> str:
    """A long error on one line, without its full stop."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return ": ".join(lines[:3]).rstrip(".") if lines else type(error).__name__
