"""Converts rows to keys and hashes in Redis, and back. Pure functions."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

import pyarrow as pa

# NULL in an address; values are quoted, so that they never equal this.
_NULL = "%"


def address(parts: Iterable[Any]) -> str:
    """The key of a row below the prefix; unique.

    >>> address([42]), address(["a:b", None, "50 %"])
    ('42', 'a%3Ab:%:50 %25')
    """
    return ":".join(_NULL if one is None else _quoted(one) for one in parts)


def _quoted(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return "".join(quote(one) if one in "%:" else one for one in text)


def fields(row: str) -> dict[str, str]:
    """A row as hash fields: text as is, other values as JSON, no field for NULL.

    >>> fields('{"id":1,"name":"Ann","gone":null}')
    {'id': '1', 'name': 'Ann'}
    """
    found = {
        name: value if isinstance(value, str) else dumped_value(value)
        for name, value in json.loads(row).items()
        if value is not None
    }
    # A hash needs at least one field.
    return found or {"": ""}


def values_of(found: dict[bytes, bytes], schema: pa.Schema) -> dict[str, Any]:
    """The values of a hash's fields, by column; columns without a field are left out.

    Args:
        found: the hash, from ``fields``.
        schema: columns of the row.

    Raises:
        ValueError: a field is not a column, or its text is not JSON.
    """
    texts = {name.decode(): value.decode() for name, value in found.items()}
    unknown = texts.keys() - {*schema.names, ""}
    if unknown:
        raise ValueError(unknown)
    return {
        field.name: json.loads(text) if _json_kind(field.type) and not _word(text) else text
        for field in schema
        if (text := texts.get(field.name)) is not None
    }


def dumped_value(value: Any) -> str:
    """A value as JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _json_kind(kind: pa.DataType) -> bool:
    """Whether JSON has values of the type other than strings."""
    return bool(
        pa.types.is_nested(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
    )


def _word(text: str) -> bool:
    """Whether it is a number that JSON lacks."""
    return text in {"NaN", "Infinity", "-Infinity"}
