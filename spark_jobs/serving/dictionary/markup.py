"""Markdown in which all text from declarations is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# All characters that may be markup in Markdown or HTML are written as numeric entities.
_SPECIAL = re.compile(r"[^\w ]|_")
_FENCE = re.compile(r"`{3,}")


def words(text: str) -> str:
    """Text on one line, escaped for Markdown and HTML.

    >>> words("a | b <i>")
    'a &#124; b &#60;i&#62;'
    """
    return _SPECIAL.sub(lambda found: f"&#{ord(found[0])};", " ".join(text.split()))


def code(text: str) -> str:
    """A name or expression as code."""
    return f"<code>{words(text)}</code>"


def link(text: str, page: str) -> str:
    """A link to another page; ``page`` is not escaped."""
    return f"[{code(text)}]({page})"


def listed(parts: Iterable[str]) -> str:
    """Parts of markup, separated."""
    return ", ".join(parts)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; empty without rows."""
    body = [_row(row) for row in rows]
    return "\n".join([_row(head), _row(["---"] * len(head)), *body]) if body else ""


def fenced(text: str, language: str) -> str:
    """A code block, also of text that contains fences."""
    longest = max((len(found) for found in _FENCE.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def page(title: str, sections: Iterable[str]) -> str:
    """A page: a heading and its non-empty sections."""
    return "\n\n".join([f"# {words(title)}", *filter(None, sections)]) + "\n"


def section(title: str, *parts: str) -> str:
    """A heading and its content; empty without content."""
    found = [part for part in parts if part]
    return "\n\n".join([f"## {title}", *found]) if found else ""


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
