"""Markdown whose every word from a declaration means itself and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# Whatever could begin markup, in Markdown or in HTML, becomes its number.
_SPECIAL = re.compile(r"[^\w ]|_")
_FENCE = re.compile(r"`{3,}")


def words(text: str) -> str:
    """Text on one line that neither Markdown nor a browser takes for markup.

    >>> words("a | b <i>")
    'a &#124; b &#60;i&#62;'
    """
    return _SPECIAL.sub(lambda found: f"&#{ord(found[0])};", " ".join(text.split()))


def code(text: str) -> str:
    """A name or an expression."""
    return f"<code>{words(text)}</code>"


def link(text: str, page: str) -> str:
    """A name that leads to another page, whose address is ours."""
    return f"[{code(text)}]({page})"


def listed(parts: Iterable[str]) -> str:
    """Parts of markup behind each other."""
    return ", ".join(parts)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of markup; nothing where there are no rows."""
    body = [_row(row) for row in rows]
    return "\n".join([_row(head), _row(["---"] * len(head)), *body]) if body else ""


def fenced(text: str, language: str) -> str:
    """A block of program text as it is, whatever fences it holds."""
    longest = max((len(found) for found in _FENCE.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def page(title: str, sections: Iterable[str]) -> str:
    """A page: a heading and its sections, without those that are empty."""
    return "\n\n".join([f"# {words(title)}", *filter(None, sections)]) + "\n"


def section(title: str, *parts: str) -> str:
    """A heading and what stands below it; nothing where that is nothing."""
    found = [part for part in parts if part]
    return "\n\n".join([f"## {title}", *found]) if found else ""


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
