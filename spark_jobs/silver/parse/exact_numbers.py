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


# Types of ``schema_of_variant`` that may be of a rounded number: mixed elements are VARIANT.
_ROUNDED = ("DOUBLE", "VARIANT")


def marked(text: Column) -> Column:
    """A JSON text with marked strings in place of numbers that a variant would round.

    Invalid JSON stays invalid. The search costs more than parsing: for long texts, parse them and
    ask ``may_be_rounded`` first.
    """
    return sf.when(text.rlike(_SUSPECT), every_number_marked(text)).otherwise(text)


def every_number_marked(text: Column) -> Column:
    """The same, for a text that has such numbers."""
    return sf.regexp_replace(text, _MARKED, f'$1"{_MARK}$2{_MARK}"')


def may_be_rounded(types: Column) -> Column:
    """Whether a variant may have a rounded number, by its ``schema_of_variant``."""
    found = [sf.contains(types, sf.lit(one)) for one in _ROUNDED]
    return found[0] | found[1]


def as_sent(text: Column) -> Column:
    """A value's text as in the record, even if it is JSON with marked numbers."""
    bare = sf.regexp_replace(text, f'"{_MARK}|{_MARK}"|{_MARK}', "")
    return sf.when(sf.contains(text, sf.lit(_MARK)), bare).otherwise(text)
