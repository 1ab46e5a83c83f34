"""Names in SQL that a person is asked to run in PostgreSQL."""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[a-z_][a-z0-9_$]*")


def sql_name(name: str) -> str:
    """A name, possibly with its schema: each part is quoted where PostgreSQL would change it.

    >>> sql_name("public.orders"), sql_name("public.Orders"), sql_name('a-"b')
    ('public.orders', 'public."Orders"', '"a-""b"')
    """
    return ".".join(one if _PLAIN.fullmatch(one) else _quoted(one) for one in name.split("."))


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
