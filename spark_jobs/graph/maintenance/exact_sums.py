"""Whether sums that are added to and subtracted from have all digits that Spark's would have."""

from __future__ import annotations

import re
from typing import Final

from spark_jobs.definitions.column_types import MOST_DIGITS
from spark_jobs.graph.decimal_types import LEAST_SCALE
from spark_jobs.graph.maintenance.column_types import is_exact_type

# Spark's sum of decimal(p,s) has p + 10 digits. Its quotient by a BIGINT has all s + 4 places
# for p up to 24; of longer ones Spark gives decimal places away to the digits before the point.
LONGEST_MEAN: Final = 24
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


def has_exact_mean(kind: str) -> bool:
    """Whether a quotient of a sum of this type has all digits of AVG; see ``_mean``."""
    decimal = _DECIMAL.fullmatch(kind)
    if decimal is None:
        return is_exact_type(kind)
    return int(decimal[1]) <= LONGEST_MEAN


def has_exact_negative(kind: str) -> bool:
    """Whether ``0 - x`` has all digits of x, of this type; see ``State.change``.

    In Spark it has a digit more before the point. Of 38 digits, one behind the point goes for it,
    unless there are only six.
    """
    decimal = _DECIMAL.fullmatch(kind)
    if decimal is None:
        return True
    return int(decimal[1]) < MOST_DIGITS or int(decimal[2]) <= LEAST_SCALE
