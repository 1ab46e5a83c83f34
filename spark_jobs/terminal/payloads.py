"""Bytes of records as text for a terminal, without control characters."""

from __future__ import annotations

from contextlib import suppress

from spark_jobs.terminal.faithful_json import parse, printed

SHOWN_CHARACTERS = 120
# Characters of a record that ``readable`` shows unless all are requested.
READABLE_CHARACTERS = 20_000
HEX_WIDTH = 16


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
