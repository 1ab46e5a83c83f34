"""The notebook runs as it stands over gold tables of the declared columns, and draws them."""

from __future__ import annotations

import base64
import io
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_jobs.settings import REPOSITORY
from tests.shipped import shipped_project

# Jupyter and Matplotlib take half a second, in each process that only collects this module.
if TYPE_CHECKING:
    from nbformat import NotebookNode

NOTEBOOK = Path(REPOSITORY, "docs/notebooks/gold.ipynb")
TYPES = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "decimal(12,2)": pa.decimal128(12, 2),
}
MAY = date(2026, 5, 1)
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
ROWS = {
    "daily_order_summary": [
        (MAY + timedelta(day), segment, 10, Decimal(100 * (day + 1) + more))
        for day in range(5)
        for segment, more in (("new", 0), ("regular", 250), ("vip", 800))
        if (day, segment) != (1, "vip")
    ],
    "content_views_daily": [
        (MAY + timedelta(day), title, country, 4, 900 * title, 2)
        for day in range(2)
        for title in range(1, 13)
        for country in ("DE", "FR")
    ],
    "request_latency_p95": [
        (service, NOON + timedelta(minutes=minute), 30, 20.0, base + 7.5 * (minute % 5), 400.0)
        for minute in range(20)
        for service, base in (("api", 120.0), ("search", 210.0))
    ],
}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Gold tables with the columns of the declarations, in a folder whose name has a space."""
    root = tmp_path_factory.mktemp("the lake")
    manifest = shipped_project()
    for view, rows in ROWS.items():
        declared = manifest.gold[view].columns
        columns = [
            pa.array(values, TYPES[one.type])
            for values, one in zip(zip(*rows, strict=True), declared, strict=True)
        ]
        table = pa.table(columns, names=[one.name for one in declared])
        write_deltalake(root / "gold" / view, table)
    return root


@pytest.fixture(scope="module")
def executed(lake: Path) -> NotebookNode:
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIDEMARK_LAKE_ROOT", str(lake))
        # What a kernel keeps for a person goes where the test's other files are.
        for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "MPLCONFIGDIR"):
            patch.setenv(name, str(lake / name))
        place = {"metadata": {"path": str(NOTEBOOK.parent)}}
        NotebookClient(notebook, timeout=240, resources=place).execute()
    return notebook


def outputs(notebook: NotebookNode, kind: str, *, beside: str = "") -> list[str]:
    """What its cells put out in a form, where they have another form beside it too."""
    found = [
        output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", [])
    ]
    return [data[kind] for data in found if kind in data and (beside or kind) in data]


def test_the_notebook_is_kept_without_what_a_run_left_in_it() -> None:
    import nbformat

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
    sources = "".join(cell.source for cell in notebook.cells)
    assert set(re.findall(r'gold\("(\w+)"\)', sources)) == set(ROWS)


def test_three_views_are_drawn(executed: NotebookNode) -> None:
    from matplotlib import image

    pictures = [
        image.imread(io.BytesIO(base64.b64decode(one))) for one in outputs(executed, "image/png")
    ]
    assert len(pictures) == len(ROWS)
    for picture in pictures:
        height, width, _ = picture.shape
        assert width > 500
        assert height > 250
        drawn = (picture[:, :, :3].min(axis=2) < 0.95).mean()
        assert 0.01 < drawn < 0.6


def test_the_numbers_are_those_of_the_tables(executed: NotebookNode) -> None:
    by_day, watched, latency = outputs(executed, "text/plain", beside="text/html")
    assert by_day.split()[:4] == ["user_segment", "new", "regular", "vip"]
    # Nobody of that segment ordered on that day.
    assert "200.0    450.0     0.0" in by_day
    # Of twelve titles the ten most watched, each over two days and two countries.
    assert [line.split()[1:] for line in watched.splitlines()[1:]] == [
        [str(title), str(float(title))] for title in range(12, 2, -1)
    ]
    assert "120.0   210.0" in latency
    # Nothing but pictures and tables: no warning, no error.
    assert not [one for cell in executed.cells for one in cell.get("outputs", []) if "text" in one]
