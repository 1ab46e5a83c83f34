"""The types of numbers as they are written."""

from __future__ import annotations

import pytest

from spark_jobs.graph.duck.errors import NotTranslatedError
from spark_jobs.graph.duck.typed import number


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("2147483647", "int"),
        ("2147483648", "bigint"),
        ("-2147483648", "int"),
        ("-2147483649", "bigint"),
        ("9223372036854775807", "bigint"),
        ("-9223372036854775808", "bigint"),
        (".5", "decimal(1,1)"),
        ("007.", "decimal(1,0)"),
        ("-12.50", "decimal(4,2)"),
        ("0.0", "decimal(1,1)"),
        (f".{'1' * 38}", "decimal(38,38)"),
    ],
)
def test_a_number_has_the_type_of_its_digits(text: str, kind: str) -> None:
    found = number(text)
    assert (str(found.kind), found.literal) == (kind, text)


@pytest.mark.parametrize("text", ["9223372036854775808", "-9223372036854775809", "1e3", "0x1F"])
def test_a_number_of_another_type_is_refused(text: str) -> None:
    with pytest.raises(NotTranslatedError):
        number(text)
