"""JSON as written: numbers keep their digits, and objects their repeated keys.

Python's reader treats 1.10 and 1.1 as the same number and drops all but the last of repeated keys,
but a person who fixes a record must see its real content.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

# Half of a character, which JSON can only write as an escape.
_HALF = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True)
class _Literal:
    """A number as written."""

    text: str


@dataclass(frozen=True)
class _Object:
    """An object's members, in their order."""

    members: tuple[tuple[str, Any], ...]


def parse(text: str) -> Any:
    """A document whose numbers and objects are as written.

    Raises:
        ValueError: this is not JSON, or it is nested too deeply to be read.
    """
    try:
        return json.loads(
            text,
            parse_int=_Literal,
            parse_float=_Literal,
            parse_constant=_refused,
            object_pairs_hook=lambda pairs: _Object(tuple(pairs)),
        )
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def members(document: Any) -> dict[str, Any]:
    """An object's members by name, the last of each; empty if it is no object."""
    return dict(document.members) if isinstance(document, _Object) else {}


def whole_number(document: Any) -> int | None:
    """The number, if the document is a whole number; otherwise None."""
    text = document.text if isinstance(document, _Literal) else ""
    return int(text) if text.isdecimal() else None


def is_object(document: Any) -> bool:
    """Whether a document is an object."""
    return isinstance(document, _Object)


def printed(document: Any, *, indent: int | None = None) -> str:
    r"""A document as text: on one line, or on many.

    Raises:
        ValueError: it is nested too deeply to be written.

    >>> printed(parse('{"a": 1.10, "a": [1e400, "\u00fc"]}'))
    '{"a": 1.10, "a": [1e400, "ü"]}'
    >>> print(printed(parse('{"a": [1, {}]}'), indent=2))
    {
      "a": [
        1,
        {}
      ]
    }
    """
    try:
        return _printed(document, " " * (indent or 0), "\n" if indent else "")
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _printed(document: Any, indent: str, newline: str) -> str:
    deeper = newline + indent
    match document:
        case _Literal(text):
            return text
        case _Object(members):
            parts = [
                f"{_quoted(name)}: {_printed(value, indent, deeper)}" for name, value in members
            ]
            return _joined("{", parts, "}", newline, deeper)
        case list():
            return _joined(
                "[", [_printed(one, indent, deeper) for one in document], "]", newline, deeper
            )
        case _:
            return _quoted(document)


def _quoted(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return _HALF.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _joined(left: str, parts: list[str], right: str, newline: str, deeper: str) -> str:
    if not parts:
        return left + right
    between = f",{deeper}" if newline else ", "
    return f"{left}{deeper}{between.join(parts)}{newline}{right}"


def _refused(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")
