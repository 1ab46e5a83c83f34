"""The numbers of arguments that Spark's functions accept.

They were measured: Spark's analyzer was asked about each function with no argument, with one, and
so on. A test on Spark measures them again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ARGUMENTS_FILE = Path(__file__).with_name("spark_arguments.json")
_EVEN = "even"


@dataclass(frozen=True)
class Arguments:
    """The arguments that a function accepts.

    Attributes:
        counts: the allowed numbers, as ``1-3,6``, ``2+`` or ``even``.
        signature: the names of the arguments in parentheses; "" if Spark does not document them.
    """

    counts: str
    signature: str

    def allow(self, count: int) -> bool:
        """Whether Spark accepts this number.

        >>> [Arguments("0,2-3,6+", "").allow(count) for count in range(8)]
        [True, False, True, True, False, False, True, True]
        """
        if self.counts == _EVEN:
            return count % 2 == 0
        return any(_within(part, count) for part in self.counts.split(","))

    @property
    def in_words(self) -> str:
        """The allowed numbers for a message.

        >>> [Arguments(counts, "").in_words for counts in ("0", "1-2", "1-3,6-7", "2+", "even")]
        ['none', '1 or 2', '1 to 3 or 6 or 7', '2 or more', 'an even number']
        """
        if self.counts == _EVEN:
            return "an even number"
        return " or ".join("none" if one == "0" else _words(one) for one in self.counts.split(","))


def function_arguments(name: str) -> Arguments | None:
    """The arguments of a function, by its name in any case; None if any number is accepted.

    >>> function_arguments("SUBSTRING")
    Arguments(counts='2-3', signature='(str, pos[, len])')
    """
    return _measured().get(name.lower())


@cache
def _measured() -> Mapping[str, Arguments]:
    read: dict[str, str] = json.loads(ARGUMENTS_FILE.read_text(encoding="utf-8"))
    split = {name: text.partition(" ") for name, text in read.items()}
    return {name: Arguments(counts, signature) for name, (counts, _, signature) in split.items()}


def _within(part: str, count: int) -> bool:
    first, sign, last = _parts(part)
    if sign == "+":
        return count >= first
    return first <= count <= (last if sign else first)


def _words(part: str) -> str:
    first, sign, last = _parts(part)
    if sign == "+":
        return f"{first} or more"
    if not sign:
        return str(first)
    return f"{first} {'or' if last == first + 1 else 'to'} {last}"


def _parts(part: str) -> tuple[int, str, int]:
    """First number, ``+``, ``-`` or nothing, last number; 0 for none."""
    found = re.fullmatch(r"(\d+)([+-]?)(\d*)", part)
    if found is None:
        raise ValueError(part)
    return int(found[1]), found[2], int(found[3] or 0)
