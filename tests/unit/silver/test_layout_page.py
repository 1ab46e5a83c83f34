"""What docs/silver.md says about layouts: its examples compile, and who writes and reads."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from deltalake import write_deltalake

from spark_jobs.graph.compile import compile_project
from spark_jobs.settings import REPOSITORY
from spark_jobs.storage import plain, policy
from tests.shipped import shipped_project

PAGE = (REPOSITORY / "docs" / "silver.md").read_text(encoding="utf-8")
SHIPPED = re.compile(r"```yaml\n(cluster_by: .*)\n```")
EXAMPLE = re.compile(r"`(sql/silver/request_log\.sql)` by day:\n\n```sql\n(.*?)```", re.DOTALL)
# Spark adds it when clustering columns are set; delta-rs cannot.
CLUSTERED = {
    "protocol": {
        "minReaderVersion": 1,
        "minWriterVersion": 7,
        "writerFeatures": ["appendOnly", "invariants", "domainMetadata", "clustering"],
    }
}


def test_one_shipped_table_has_the_layout_of_the_page() -> None:
    [header] = SHIPPED.findall(PAGE)
    shipped = shipped_project().silver.values()
    laid_out = {one.name: one.cluster_by for one in shipped if one.partition_by or one.cluster_by}
    assert laid_out == {"request_log": tuple(yaml.safe_load(header)["cluster_by"])}


def test_the_example_fits_the_shipped_project(tmp_path: Path) -> None:
    for folder in ("expectations", "sources", "sql", "schemas"):
        if (REPOSITORY / folder).exists():
            shutil.copytree(REPOSITORY / folder, tmp_path / folder)
    [(file, body)] = EXAMPLE.findall(PAGE)
    (tmp_path / file).write_text(body, encoding="utf-8")
    entry = compile_project(tmp_path).silver["request_log"]
    assert entry.partition_by == ("day",)
    assert {one.name: one.type for one in entry.columns}["day"] == "date"


@pytest.mark.parametrize(
    ("layout", "appended", "merged", "read"),
    [
        ("none", True, True, True),
        ("partition", True, False, False),
        ("cluster", False, False, True),
    ],
)
def test_the_layout_decides_which_writes_need_spark(
    tmp_path: Path, layout: str, appended: bool, merged: bool, read: bool
) -> None:
    location = str(tmp_path / "table")
    by = ["day"] if layout == "partition" else None
    write_deltalake(location, pa.table({"id": [1, 2], "day": [1, 2]}), partition_by=by)
    if layout == "cluster":
        commit = tmp_path / "table" / "_delta_log" / f"{1:020}.json"
        commit.write_text(json.dumps(CLUSTERED) + "\n")
    assert (plain.open_for_adding(location) is not None) is appended
    assert (plain.open_for_rewriting(location) is not None) is merged
    assert (plain.plain_table(location) is not None) is read


def test_the_sizes_are_those_of_the_page() -> None:
    assert policy.REWRITTEN.bytes == 256 * 2**20
    assert (policy.SCANNED.bytes, policy.SCANNED.files) == (2**30, 200)
    assert "up to 256 MiB" in PAGE
    assert "up to 1 GiB and 200 files" in PAGE
