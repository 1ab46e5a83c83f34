"""The section of a table's page about its expectations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from spark_jobs.definitions.vocabulary import OnFailure, Severity
from spark_jobs.serving.dictionary import markup

_NOT_NULL = "expect_column_values_to_not_be_null"
_MEANING = {
    Severity.CRITICAL: "blocks the publication",
    Severity.WARNING: "is reported",
    Severity.INFO: "is written down",
}


_OF_BATCHES = {
    OnFailure.WARN: "is reported",
    OnFailure.QUARANTINE: "sends the row to quarantine",
    OnFailure.HOLD: "keeps the batch out, and the table waits",
}


def checks(suite: Mapping[str, Any] | None, *, of_batches: OnFailure | None = None) -> str:
    """The section about the gate, as Markdown; empty without expectations.

    Args:
        suite: of the table, in Great Expectations' format; None if it has none.
        of_batches: what a critical failure does to a silver table's batch; None: a gold view.
    """
    meaning = (
        _MEANING if of_batches is None else _MEANING | {Severity.CRITICAL: _OF_BATCHES[of_batches]}
    )
    judged = "a result is published" if of_batches is None else "the rows of a batch are written"
    rows = [
        (
            f"{severity}: {meaning[severity]}",
            f"{markup.code(rule)} {markup.words(_arguments(arguments))}",
            markup.words(notes),
        )
        for severity, rule, arguments, notes in _expectations(suite)
    ]
    return markup.section(
        "Checks",
        f"What must hold before {judged}, and what a failure does." if rows else "",
        markup.table(("a failure", "rule", "why"), rows),
    )


def never_null(suite: Mapping[str, Any] | None) -> frozenset[str]:
    """Columns that are never NULL in a publication, because of a critical expectation.

    Args:
        suite: in Great Expectations' format; None if the table has none.
    """
    return frozenset(
        str(arguments["column"])
        for severity, rule, arguments, _ in _expectations(suite)
        if rule == _NOT_NULL
        and severity is Severity.CRITICAL
        and float(arguments.get("mostly", 1)) >= 1
    )


def _expectations(
    suite: Mapping[str, Any] | None,
) -> Iterator[tuple[Severity, str, Mapping[str, Any], str]]:
    for one in (suite or {}).get("expectations", ()):
        notes = (one.get("meta") or {}).get("notes") or one.get("notes") or ""
        yield (
            Severity(one.get("severity", Severity.CRITICAL)),
            str(one["type"]),
            one.get("kwargs") or {},
            " ".join(notes) if isinstance(notes, list) else str(notes),
        )


def _arguments(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in sorted(arguments.items()))
