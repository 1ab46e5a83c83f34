"""Spark SQL's column types that a Delta table can store.

Parsed here, without a SQL parser, so that messages name the wrong word.
"""

from __future__ import annotations

import re
from typing import Final

from spark_jobs.errors import did_you_mean

_ALIASES = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "dec": "decimal",
    "numeric": "decimal",
    "timestamp_ltz": "timestamp",
}
_SIMPLE = (
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "string",
    "varchar", "char", "binary", "date", "timestamp", "timestamp_ntz",
)  # fmt: skip
_NESTED = ("array", "map", "struct")
_KNOWN = (*_SIMPLE, *_NESTED)
# Type names of other databases, and those of Spark SQL.
_FOREIGN = {
    "text": "string", "str": "string", "uuid": "string", "json": "string", "jsonb": "string",
    "datetime": "timestamp", "timestamptz": "timestamp", "time": "string", "int64": "bigint",
    "int32": "int", "int4": "int", "int8": "bigint", "serial": "int", "bigserial": "bigint",
    "float64": "double", "float32": "float", "bool": "boolean", "bytes": "binary",
    "bytea": "binary", "number": "decimal(p,s)", "object": "struct<...>", "list": "array<...>",
}  # fmt: skip
_TOKEN = re.compile(r"\s*(`[^`]+`|[A-Za-z_][A-Za-z0-9_]*|\d+|[<>(),:])")
# Of a decimal.
MOST_DIGITS: Final = 38


class TypeTextError(ValueError):
    """A type that cannot be parsed; ``args`` are the problem and a hint."""


def canonical_type(text: str) -> str:
    """The type in Spark's lower-case spelling.

    Raises:
        TypeTextError: with the problem and a hint.

    >>> canonical_type("DECIMAL(12, 2)")
    'decimal(12,2)'
    >>> canonical_type("Struct<Id: LONG, tags: ARRAY<STRING>>")
    'struct<Id:bigint,tags:array<string>>'
    """
    reader = _Reader(text)
    canonical = reader.type()
    reader.end()
    return canonical


class _Reader:
    def __init__(self, text: str) -> None:
        self.tokens: list[str] = []
        position = 0
        text = text.rstrip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if not match:
                raise TypeTextError(f"{text[position:].strip()[:1]!r} is not expected", _EXAMPLES)
            self.tokens.append(match[1])
            position = match.end()
        self.next = 0

    def peek(self) -> str:
        return self.tokens[self.next] if self.next < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.next += 1
        return token

    def expect(self, token: str) -> None:
        found = self.take()
        if found != token:
            seen = repr(found) if found else "the end"
            raise TypeTextError(f"expected {token!r} and found {seen}", _EXAMPLES)

    def end(self) -> None:
        if self.peek():
            raise TypeTextError(f"{self.peek()!r} is not expected after the type", _EXAMPLES)

    def type(self) -> str:
        word = self.take().lower()
        name = _ALIASES.get(word, word)
        if name not in _KNOWN:
            raise TypeTextError(_unknown(word), _suggestion(word))
        match name:
            case "array":
                self.expect("<")
                element = self.type()
                self.expect(">")
                return f"array<{element}>"
            case "map":
                self.expect("<")
                key = self.type()
                self.expect(",")
                value = self.type()
                self.expect(">")
                return f"map<{key},{value}>"
            case "struct":
                return self.struct()
            case "decimal":
                return self.decimal()
            case "varchar" | "char":
                self.expect("(")
                length = self.number(1, 2**31 - 1)
                self.expect(")")
                return f"{name}({length})"
            case _:
                return name

    def struct(self) -> str:
        self.expect("<")
        fields = []
        while True:
            name = self.take()
            if not re.fullmatch(r"`[^`]+`|[A-Za-z_]\w*", name):
                raise TypeTextError("a field of the struct has no name", _EXAMPLES)
            if self.peek() == ":":
                self.take()
            fields.append(f"{name}:{self.type()}")
            if self.peek() != ",":
                break
            self.take()
        self.expect(">")
        return f"struct<{','.join(fields)}>"

    def decimal(self) -> str:
        if self.peek() != "(":
            return "decimal(10,0)"
        self.take()
        precision = self.number(1, MOST_DIGITS)
        scale = 0
        if self.peek() == ",":
            self.take()
            scale = self.number(0, precision)
        self.expect(")")
        return f"decimal({precision},{scale})"

    def number(self, low: int, high: int) -> int:
        token = self.take()
        if not token.isdigit() or not low <= int(token) <= high:
            raise TypeTextError(
                f"expected a number from {low} to {high} and found {token!r}", _EXAMPLES
            )
        return int(token)


_EXAMPLES = (
    "Write a Spark SQL type, for example BIGINT, DECIMAL(12,2), TIMESTAMP, ARRAY<STRING> or "
    "STRUCT<id: BIGINT, name: STRING>."
)


def _unknown(word: str) -> str:
    return f"{word!r} is not a type of Spark SQL" if word else "the type is empty"


def _suggestion(word: str) -> str:
    if word in _FOREIGN:
        return f"Spark's word is {_FOREIGN[word].upper()}."
    return did_you_mean(word, [*_KNOWN, *_ALIASES]) or _EXAMPLES
