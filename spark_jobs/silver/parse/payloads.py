"""Checks of a record's bytes before they are parsed."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as sf

# Far more than needed: a row is a few levels deep, and a JSON column rarely has ten.
MAX_DEPTH = 200
# Magic numbers of formats that producers send by mistake.
_SIGNATURES = {
    "1F8B": "gzip",
    "28B52FFD": "zstd",
    "04224D18": "lz4",
    "FF060000": "snappy",
    "00": "a schema registry's framing",
    "EFBBBF": "a byte order mark",
    "FFFE": "UTF-16",
    "FEFF": "UTF-16",
}
_LONGEST = 4


def looks_like(column: str) -> Column:
    """The format that a binary column's first bytes indicate, or NULL."""
    start = sf.hex(sf.substring(column, 1, _LONGEST))
    known = [sf.when(start.startswith(bytes_), name) for bytes_, name in _SIGNATURES.items()]
    return sf.coalesce(*known)


def too_deep(text: Column) -> Column:
    """Whether a JSON text nests more than ``MAX_DEPTH`` objects and arrays.

    Most texts are too short for that, or have too few brackets. Of the others only the brackets
    outside of strings are kept and counted.
    """
    # Each level takes two bytes, or the text is not JSON.
    long = sf.octet_length(text) > 2 * MAX_DEPTH
    # Java splits at one character without its matcher, which is faster than to replace it.
    opened = [sf.size(sf.split(text, sign, MAX_DEPTH + 2)) - 1 for sign in (r"\{", r"\[")]
    # With these patterns Java's matcher does not recurse, however long the text.
    unescaped = sf.regexp_replace(text, r"(?s)\\.", "")
    brackets = sf.regexp_replace(sf.regexp_replace(unescaped, r'"[^"]*+"?', ""), r"[^\[\]{}]++", "")
    step = sf.split(brackets, "")
    deepest = sf.aggregate(
        step,
        sf.struct(sf.lit(0).alias("level"), sf.lit(0).alias("deepest")),
        lambda state, sign: sf.struct(
            _level(state, sign).alias("level"),
            sf.greatest(state["deepest"], _level(state, sign)).alias("deepest"),
        ),
        lambda state: state["deepest"],
    )
    many = opened[0] + opened[1] > MAX_DEPTH
    return sf.when(long & many, deepest > MAX_DEPTH).otherwise(sf.lit(False))  # noqa: FBT003


def _level(state: Column, sign: Column) -> Column:
    up = sf.when(sign.isin("{", "["), 1).when(sign.isin("}", "]"), -1).otherwise(0)
    return state["level"] + up
