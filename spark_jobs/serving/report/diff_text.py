"""Renders a preview: tables for the terminal, or Markdown for a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

_MOST_COLUMNS = 8


def diff_markdown(
    found: Sequence[dict[str, Any]],
    *,
    against: str,
    versions: dict[str, int],
    edited: Sequence[str] = (),
) -> str:
    """The preview as Markdown.

    Args:
        found: the tables, each as from ``TablePreview.as_dict``.
        against: what it was compared with.
        versions: versions of the inputs, by table.
        edited: changed silver tables that were not compared.
    """
    lines = [f"### What changes against {against}", ""]
    more = (
        [
            "Also changed, and not compared: "
            + ", ".join(f"`{one}`" for one in edited)
            + f". `tidemark diff {edited[0]}` rebuilds it from bronze for that."
        ]
        if edited
        else []
    )
    if not found:
        lines += ["No gold view changes.", *(["", *more] if more else [])]
        return "\n".join(lines) + "\n"
    lines += [
        "| table | why | rows | added | removed | changed | columns |",
        "|---|---|---:|---:|---:|---:|---|",
        *(_row(one) for one in found),
        "",
    ]
    for one in found:
        lines += _samples(one)
    pinned = ", ".join(f"{table}@{version}" for table, version in versions.items())
    if pinned:
        lines.append(f"Computed at {pinned}; nothing was published.")
    if more:
        lines += ["", *more]
    return "\n".join(lines) + "\n"


def _row(one: dict[str, Any]) -> str:
    name = f"`{one['table']}`"
    if "rows_after" not in one:
        return f"| {name} | {one['why']} | | | | | {one['detail']} |"
    rows = f"{one['rows_before']:,} → {one['rows_after']:,}"
    counts = " | ".join(_count(one[key]) for key in ("added", "removed", "changed"))
    return f"| {name} | {one['why']} | {rows} | {counts} | {_columns(one)} |"


def _count(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"


def _columns(one: dict[str, Any]) -> str:
    parts = [f"{name}: {rows:,}" for name, rows in one["columns"].items()]
    parts += [f"+{name}" for name in one["columns_added"]] if one["why"] != "new" else []
    parts += [f"-{name}" for name in one["columns_removed"]]
    return ", ".join(parts) or "none"


def _samples(one: dict[str, Any]) -> Iterator[str]:
    rows = one.get("samples") or []
    if not rows:
        return
    names = list(dict.fromkeys(name for row in rows for name in row))[: _MOST_COLUMNS + 1]
    yield f"Some rows of `{one['table']}`:"
    yield ""
    yield "| " + " | ".join(name or " " for name in names) + " |"
    yield "|" + "---|" * len(names)
    for row in rows:
        yield "| " + " | ".join(_cell(row.get(name, "")) for name in names) + " |"
    yield ""


def _cell(value: str | None) -> str:
    text = "NULL" if value is None else str(value)
    return text.replace("|", r"\|").replace("\n", " ")
