"""Texts of intervals."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"([+-]?)\s*(\d+\.?\d*|\.\d+)")


def with_plain_number(text: str) -> str:
    """The text of an interval with its number as sqlglot reads one.

    >>> with_plain_number("- .5 seconds"), with_plain_number("+1. second")
    ('-0.5 seconds', '1 second')
    """
    return _NUMBER.sub(_plain, text)


def _plain(found: re.Match[str]) -> str:
    sign, number = found[1].removeprefix("+"), found[2].removesuffix(".")
    return f"{sign}0{number}" if number.startswith(".") else f"{sign}{number}"
