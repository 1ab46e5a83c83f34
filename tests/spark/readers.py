"""The readers that docs/analysts.md shows, run as they stand there over any Delta table."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from spark_jobs.settings import REPOSITORY
from spark_jobs.testing.multisets import Row, difference

PAGE = Path(REPOSITORY, "docs", "analysts.md").read_text(encoding="utf-8")
# The table that the page's snippets read.
SHOWN = '".tidemark/lake/gold/user_order_stats"'
SNIPPETS: dict[str, str] = dict(
    re.findall(r"^### (\S+)\n(?:(?!^###).)*?^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
)
# What the others are compared with.
ORACLE = "Spark"


def read_with(reader: str, location: str) -> Any:
    """What a reader's snippet gives, for the table at a location."""
    snippet = SNIPPETS[reader]
    assert SHOWN in snippet
    names: dict[str, Any] = {}
    exec(snippet.replace(SHOWN, repr(location)), names)  # noqa: S102 - the page's own lines
    return names["rows"]


def disagreements(location: str) -> dict[str, tuple[tuple[Row, ...], tuple[Row, ...]]]:
    """Readers that see other rows than Spark: rows that only Spark sees, and those only they."""
    expected = arrow(read_with(ORACLE, location))
    found = {}
    for reader in SNIPPETS.keys() - {ORACLE}:
        actual = arrow(read_with(reader, location))
        assert actual.column_names == expected.column_names
        differing = difference(expected, actual.cast(expected.schema))
        if differing != ((), ()):
            found[reader] = differing
    return found


def arrow(rows: Any) -> pa.Table:
    """What any of the readers gives, as Arrow."""
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, DataFrame):
        return rows.toArrow()
    if hasattr(rows, "to_arrow_table"):
        return rows.to_arrow_table()
    if hasattr(rows, "to_arrow"):
        return rows.to_arrow()
    return pa.Table.from_pandas(rows, preserve_index=False).replace_schema_metadata(None)
