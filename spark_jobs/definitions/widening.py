"""Which types can represent every value of another one."""

from __future__ import annotations

import re

_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
# Decimal digits that a whole number of each type can have.
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
# A timestamp is not wider than a date: the old records contain no time and would be rejected.
_WIDER = {
    "tinyint": {"smallint", "int", "bigint", "double"},
    "smallint": {"int", "bigint", "double"},
    "int": {"bigint", "double"},
    "float": {"double"},
}


def wider(held: str, declared: str) -> bool:
    """Whether the second type can represent every value of the first.

    >>> wider("int", "bigint"), wider("bigint", "int"), wider("int", "decimal(12,2)")
    (True, False, True)
    >>> wider("decimal(10,2)", "decimal(12,3)"), wider("decimal(10,2)", "decimal(10,3)")
    (True, False)
    """
    if declared in _WIDER.get(held, ()):
        return True
    target = _DECIMAL.fullmatch(declared)
    if target is None:
        return False
    precision, scale = int(target[1]), int(target[2])
    if held in _DIGITS:
        return precision - scale >= _DIGITS[held]
    source = _DECIMAL.fullmatch(held)
    if source is None:
        return False
    whole, fraction = int(source[1]) - int(source[2]), int(source[2])
    return scale >= fraction and precision - scale >= whole
