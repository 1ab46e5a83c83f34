"""Preserves the text of numbers that a variant would round.

A variant stores a number with more than 38 digits or with an exponent as a double. Such numbers are
replaced by marked strings before parsing, and the mark is removed when a value is read.
"""

from __future__ import annotations

import secrets

from pyspark.sql import Column
from pyspark.sql import functions as sf

# Random per process, so that no record can contain it.
_MARK = secrets.token_hex(16)
_DIGITS = 38
# The start of a number that may need a mark; only texts that contain it are scanned.
_SUSPECT = rf"[:,\[]\s*+-?(?:\d++(?:\.\d++)?+[eE]|[\d.]{{{_DIGITS + 1}}})"
# Possessive patterns: Java's matcher neither recurses nor backtracks.
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_ORDINARY = rf"-?(?=[\d.]{{1,{_DIGITS}}}+(?![\d.eE]))[\d.]++"
_NUMBER = r"-?(?:0|[1-9]\d*+)(?:\.\d++)?+(?:[eE][+-]?\d++)?+"
# The lookahead distinguishes a value from an object's key.
_MARKED = rf'(?s)\G((?:[^"\d-]++|{_STRING}|{_ORDINARY})*+)({_NUMBER})(?=\s*+(?:[,\]}}]|$))'


def marked(text: Column) -> Column:
    """A JSON text with marked strings in place of numbers that a variant would round.

    Invalid JSON stays invalid.
    """
    exact = sf.regexp_replace(text, _MARKED, f'$1"{_MARK}$2{_MARK}"')
    return sf.when(text.rlike(_SUSPECT), exact).otherwise(text)


def as_sent(text: Column) -> Column:
    """A value's text as in the record, even if it is JSON with marked numbers."""
    bare = sf.regexp_replace(text, f'"{_MARK}|{_MARK}"|{_MARK}', "")
    return sf.when(sf.contains(text, sf.lit(_MARK)), bare).otherwise(text)
