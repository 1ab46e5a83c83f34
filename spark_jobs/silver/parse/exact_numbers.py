"""Keeps the text of numbers that a variant would round.

A variant holds a number of more than 38 digits, or one with an exponent, as a double. Such a number
becomes a text with a mark before the document is parsed, and the mark goes when a value is read.
"""

from __future__ import annotations

import secrets

from pyspark.sql import Column
from pyspark.sql import functions as sf

# New in each process, so that no text of a record can have it.
_MARK = secrets.token_hex(16)
_DIGITS = 38
# Where a number begins that may have to be marked; a text that has this anywhere is read closely.
_SUSPECT = rf"[:,\[]\s*+-?(?:\d++(?:\.\d++)?+[eE]|[\d.]{{{_DIGITS + 1}}})"
# Each pattern is possessive, so that Java's matcher neither recurses nor tries again.
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_ORDINARY = rf"-?(?=[\d.]{{1,{_DIGITS}}}+(?![\d.eE]))[\d.]++"
_NUMBER = r"-?(?:0|[1-9]\d*+)(?:\.\d++)?+(?:[eE][+-]?\d++)?+"
# What follows tells a value from an object's key, which may be no number.
_MARKED = rf'(?s)\G((?:[^"\d-]++|{_STRING}|{_ORDINARY})*+)({_NUMBER})(?=\s*+(?:[,\]}}]|$))'


def marked(text: Column) -> Column:
    """A JSON text whose numbers of too many digits or with an exponent are marked texts.

    What is not JSON stays none.
    """
    exact = sf.regexp_replace(text, _MARKED, f'$1"{_MARK}$2{_MARK}"')
    return sf.when(text.rlike(_SUSPECT), exact).otherwise(text)


def as_sent(text: Column) -> Column:
    """A value's text as the record has it, also where it is JSON with marked numbers."""
    bare = sf.regexp_replace(text, f'"{_MARK}|{_MARK}"|{_MARK}', "")
    return sf.when(sf.contains(text, sf.lit(_MARK)), bare).otherwise(text)
