"""Checks a change of the project against the contracts of gold views."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import KW_ONLY
from datetime import date

from spark_jobs.errors import LocatedError, Location
from spark_jobs.graph.manifest import GoldEntry, Manifest


class ContractBrokenError(LocatedError):
    """A change that breaks the contract of a view."""

    condition = "CONTRACT_BROKEN"
    name: str
    breaks: str
    promised: int
    _: KW_ONLY
    hint: str
    primary = "{name}: version {promised} of its contract is broken: {breaks}"


def broken_contracts(
    before: Manifest, after: Manifest, *, today: date, allowed: Collection[str] = ()
) -> Iterator[ContractBrokenError]:
    """Contracts that a change would break.

    Args:
        before: the running project.
        after: the changed project.
        today: the day in UTC; a deprecated column may be removed from its day on.
        allowed: views whose contract may be broken, as ``name`` or ``gold.name``.
    """
    names = {name.removeprefix("gold.") for name in allowed}
    for name, was in sorted(before.gold.items()):
        now = after.gold.get(name)
        raised = now is not None and now.contract and now.contract_version > was.contract_version
        if was.contract is None or raised or name in names:
            continue
        if breaks := _breaks(was, now, today):
            yield ContractBrokenError(
                str(was.table_name),
                "; ".join(breaks),
                was.contract_version,
                hint=_hint(was, now),
                location=Location((now or was).file),
            )


def _breaks(was: GoldEntry, now: GoldEntry | None, today: date) -> list[str]:
    if now is None:
        return ["the view is removed"]
    columns = {one.name.lower(): one for one in now.columns}
    found = []
    for promised in was.columns:
        column = columns.get(promised.name.lower())
        if column is None:
            gone = promised.deprecation
            if gone is not None and gone.day <= today:
                continue
            new = _renamed(promised.name, was, now)
            what = f"{promised.name} becomes {new}" if new else f"{promised.name} is removed"
            found.append(what if gone is None else f"{what} before {gone.day}")
        elif column.type != promised.type:
            kind = column.type or "a type that the SQL does not say"
            found.append(f"{promised.name} changes from {promised.type} to {kind}")
    return found


def _renamed(name: str, was: GoldEntry, now: GoldEntry) -> str | None:
    """The new column with the same expression, if there is exactly one."""
    if was.parts is None or now.parts is None or name not in was.parts.columns:
        return None
    old = {one.name.lower() for one in was.columns}
    same = [
        column
        for column, digest in now.parts.columns.items()
        if digest == was.parts.columns[name] and column.lower() not in old
    ]
    return same[0] if len(same) == 1 else None


def _hint(was: GoldEntry, now: GoldEntry | None) -> str:
    flag = f"pass --break-contract {was.table_name}"
    if now is None:
        return f"Keep the file, or, if nobody reads the table, {flag}."
    version = was.contract_version + 1
    return (
        "Keep the promised columns, a deprecated one until its day, and add others beside them; "
        "or write "
        f"contract: strict and contract_version: {version} once readers know; or, for once, {flag}."
    )
