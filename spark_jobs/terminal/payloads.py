"""Bytes of records as text for a terminal, without control characters."""

from __future__ import annotations

import re
from contextlib import suppress

from spark_jobs.terminal.faithful_json import parse, printed

SHOWN_CHARACTERS = 120
# Characters of a record that ``readable`` shows unless all are requested.
READABLE_CHARACTERS = 20_000
HEX_WIDTH = 16
# Control characters except for tab and line end, and those that change the direction of writing.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def shown(value: bytes | None, *, raw: bool) -> str:
    r"""Bytes as one line.

    >>> shown(b'{"a": "\xff\x1b[2J"}', raw=True)
    '{"a": "\\xff\\x1b[2J"}'
    """
    if value is None:
        return "NULL"
    # A character has at most four bytes.
    start = value if raw else value[: 4 * SHOWN_CHARACTERS]
    safe = _safe(start.decode("utf-8", "backslashreplace"))
    if raw or (len(safe) <= SHOWN_CHARACTERS and len(start) == len(value)):
        return safe
    return f"{safe[:SHOWN_CHARACTERS]}... ({len(value):,} bytes)"


def readable(value: bytes | None, *, raw: bool) -> str:
    """Bytes for reading: JSON on many lines, other text as it is, the rest in hex."""
    if value is None:
        return "NULL"
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = _hex(value if raw else value[: READABLE_CHARACTERS // 5])
    else:
        with suppress(ValueError):
            text = printed(parse(text), indent=2)
    safe = "\n".join(map(_safe, text.split("\n")))
    if raw or len(safe) <= READABLE_CHARACTERS:
        return safe
    return f"{safe[:READABLE_CHARACTERS]}\n... ({len(value):,} bytes; --raw shows all)"


def harmless(text: str) -> str:
    r"""A text for a terminal: its lines, without what would control the terminal or turn the order.

    >>> harmless("\u3042\u3000b\x1b[2J\u202e\tc")
    '\u3042\u3000b\\x1b[2J\\u202e\tc'
    """
    return _CONTROLS.sub(lambda found: repr(found[0])[1:-1], text)


def one_line(text: str) -> str:
    r"""A name or a message of others as a part of one line.

    >>> one_line("a\n\x1b[2J\u00fc")
    'a\\n\\x1b[2Jü'
    """
    return _safe(text)


def _safe(text: str) -> str:
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def _hex(value: bytes) -> str:
    r"""Sixteen bytes a line: the offset, the bytes, and the same as ASCII.

    >>> _hex(b"a\xff")
    '00000000  61 ff                                            a.'
    """
    return "\n".join(
        f"{start:08x}  {value[start : start + HEX_WIDTH].hex(' '):<{3 * HEX_WIDTH}} "
        + "".join(
            chr(byte) if 32 <= byte < 127 else "." for byte in value[start : start + HEX_WIDTH]
        )
        for start in range(0, len(value), HEX_WIDTH)
    )
