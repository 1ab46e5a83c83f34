"""Airflow for the tests, and a small project whose input is a foreign Delta table.

Airflow reads its configuration at its first import, so its home is set here: pytest imports this
file before any module that imports Airflow.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_jobs.definitions.vocabulary import RefreshPolicy, SourceFormat
from spark_jobs.graph.manifest import Column, GoldEntry, Manifest, SourceEntry
from spark_jobs.settings import Settings, load_settings
from tests.compiling import put_compiled

REPOSITORY = Path(__file__).parents[2]


def remove(home: str, *, owner: int) -> None:
    """Remove a directory in the process that made it, and in none that was forked from it."""
    if os.getpid() == owner:
        shutil.rmtree(home, ignore_errors=True)


os.environ["AIRFLOW_HOME"] = tempfile.mkdtemp(prefix="tidemark-airflow-")
# What Airflow registers later runs before it.
atexit.register(remove, os.environ["AIRFLOW_HOME"], owner=os.getpid())
os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
os.environ["AIRFLOW__LOGGING__LOGGING_LEVEL"] = "WARNING"
os.environ["AIRFLOW__CORE__PLUGINS_FOLDER"] = str(REPOSITORY / "spark_jobs/orchestration/plugins")
# Tests share DAG ids: declarations of one test must not hide those of the next.
os.environ["AIRFLOW__CORE__MIN_SERIALIZED_DAG_UPDATE_INTERVAL"] = "0"
os.environ["AIRFLOW__CORE__DAGS_FOLDER"] = str(REPOSITORY / "dags")

REVENUE_IS_POSITIVE = {
    "name": "order_totals",
    "expectations": [
        {
            "type": "expect_column_values_to_be_between",
            "kwargs": {"column": "revenue", "min_value": 0},
            "severity": "critical",
        }
    ],
}


@dataclass
class Project:
    """A project directory with one foreign table and one gold view that reads it."""

    directory: Path
    settings: Settings = field(init=False)

    def __post_init__(self) -> None:
        self.directory.mkdir()
        self.settings = load_settings(self.directory)

    @property
    def orders_at(self) -> str:
        return str(self.directory / "orders")

    @property
    def totals_at(self) -> str:
        return f"{self.settings.lake}/gold/order_totals"

    def order(self, customer: str, amount: str) -> None:
        """Append an order, as the table's owner does."""
        rows = pa.table(
            {
                "customer": [customer],
                "amount": pa.array([Decimal(amount)], type=pa.decimal128(12, 2)),
            }
        )
        write_deltalake(self.orders_at, rows, mode="append")

    def totals(self) -> dict[str, Decimal]:
        """The published revenue by customer."""
        rows = DeltaTable(self.totals_at).to_pyarrow_table().to_pylist()
        return {row["customer"]: row["revenue"] for row in rows}

    def compile(self, **changes: Any) -> Manifest:
        """Write the manifest, with ``changes`` of the gold view."""
        amount = Column(name="amount", type="decimal(12,2)")
        orders = SourceEntry(
            name="orders",
            format=SourceFormat.DELTA,
            location=self.orders_at,
            columns=(Column(name="customer", type="string"), amount),
            file="sources/orders.yml",
        )
        select = (
            "SELECT o.customer AS customer, CAST(SUM(o.amount) AS DECIMAL(12, 2)) AS revenue "
            "FROM bronze.orders AS o GROUP BY o.customer"
        )
        view: dict[str, Any] = {
            "name": "order_totals",
            "description": "Revenue per customer.",
            "owner": "analytics",
            "tags": ("shop",),
            "refresh": RefreshPolicy.MICRO_BATCH,
            "every_seconds": 900,
            "freshness_seconds": 1800,
            "sql": select,
            "query": select,
            "inputs": ("bronze.orders",),
            "columns": (
                Column(name="customer", type="string", description="who ordered"),
                Column(name="revenue", type="decimal(12,2)"),
            ),
            "fingerprint": "1",
            "deterministic": True,
            "reads_clock": False,
            "file": "sql/gold/order_totals.sql",
            "tier": 0,
        }
        manifest = Manifest(
            project="project",
            sources={"orders": orders},
            gold={"order_totals": GoldEntry(**(view | changes))},
        )
        put_compiled(self.settings, manifest)
        return manifest


@pytest.fixture(scope="session")
def airflow_database() -> Path:
    """The migrated SQLite metadata database of this run."""
    home = Path(os.environ["AIRFLOW_HOME"])
    subprocess.run(
        [sys.executable, "-m", "airflow", "db", "migrate"],
        check=True,
        capture_output=True,
        timeout=180,
    )
    return home / "airflow.db"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A compiled project, to which environment variables point the DAG file and the tasks."""
    directory = tmp_path / "project"
    monkeypatch.setenv("TIDEMARK_PROJECT", str(directory))
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("TIDEMARK_SPARK__MASTER", "local[2]")
    monkeypatch.setenv("TIDEMARK_SPARK__DRIVER_MEMORY", "1g")
    made = Project(directory)
    made.compile()
    return made


@pytest.fixture
def revenue_is_positive() -> dict[str, Any]:
    """A suite with one critical expectation."""
    return REVENUE_IS_POSITIVE


@pytest.fixture
def dag_file() -> Path:
    """The file that Airflow reads."""
    return REPOSITORY / "dags/tidemark_gold.py"
