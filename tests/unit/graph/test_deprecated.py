"""Deprecated columns: where readers see the deprecation, and who still reads them."""

from __future__ import annotations

import html
import json
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from typer.testing import CliRunner

from spark_jobs.cli.main import app
from spark_jobs.errors import ProblemsError
from spark_jobs.graph.compile import compile_project
from spark_jobs.graph.deprecated import DeprecatedColumnError
from spark_jobs.graph.doubts import doubts
from spark_jobs.graph.manifest import Manifest
from spark_jobs.orchestration.documentation import view_documentation
from spark_jobs.serving.dictionary.site import build_site
from spark_jobs.settings import load_settings
from spark_jobs.storage import log
from spark_jobs.storage.lake import Lake
from tests.golden.declaration_cases import write_project

HEADER = "/* gold\ndescription: Spend.\nowner: analytics\nrefresh: bulk\n"
SAYS = {
    "{description: Paid, deprecated: 2027-01-31, use: net}": (
        "Paid. Deprecated, may be removed from 2027-01-31: use net."
    ),
    "{description: Paid., deprecated: 2027-01-31}": (
        "Paid. Deprecated, may be removed from 2027-01-31."
    ),
    '{deprecated: "2027-01-31", use: the view gold.other.}': (
        "by comment. Deprecated, may be removed from 2027-01-31: use the view gold.other."
    ),
    "{description: Paid.}": "Paid.",
    "Paid.": "Paid.",
}
SPEND = """\
columns:
  spend: {said}
*/
SELECT
  o.order_id,
  o.amount * 2 AS spend, -- by comment
  o.amount AS net
FROM silver.orders AS o
"""
OTHER = "SELECT o.order_id, o.amount AS spend FROM silver.orders AS o"
GONE = "{description: Paid, deprecated: 2027-01-31, use: net}"
TOLD = "Paid. Deprecated, may be removed from 2027-01-31: use net."


def files(said: str, *readers: str) -> dict[str, str | None]:
    views = {f"sql/gold/reader{at}.sql": f"{HEADER}*/\n{sql}\n" for at, sql in enumerate(readers)}
    return {"sql/gold/spend.sql": HEADER + SPEND.replace("{said}", said), **views} | {
        "expectations/gold/spend.json": None
    }


def warnings(tmp_path: Path, *readers: str) -> list[DeprecatedColumnError]:
    project = write_project(tmp_path, files(GONE, *readers))
    found = doubts(compile_project(project), project)
    return [one for one in found if isinstance(one, DeprecatedColumnError)]


@pytest.mark.parametrize(("said", "meaning"), SAYS.items())
def test_the_deprecation_follows_the_column_description(
    tmp_path: Path, said: str, meaning: str
) -> None:
    entry = compile_project(write_project(tmp_path, files(said))).gold["spend"]
    assert [column.meaning for column in entry.columns] == [None, meaning, None]


def test_a_copy_of_a_deprecated_column_stays(tmp_path: Path) -> None:
    project = write_project(tmp_path, files(GONE, "SELECT s.spend FROM gold.spend AS s"))
    (copy,) = compile_project(project).gold["reader0"].columns
    assert (copy.description, copy.deprecation, copy.meaning) == ("Paid", None, "Paid")


def test_the_manifest_keeps_the_day(tmp_path: Path) -> None:
    manifest = compile_project(write_project(tmp_path, files(GONE)))
    again = Manifest.model_validate_json(manifest.model_dump_json())
    assert again == manifest
    gone = again.gold["spend"].columns[1].deprecation
    assert gone is not None
    assert (gone.day, gone.use) == (date(2027, 1, 31), "net")


def test_a_deprecation_changes_no_fingerprint(tmp_path: Path) -> None:
    was, now = (
        compile_project(write_project(tmp_path / said[:4], files(said))).gold["spend"]
        for said in ("Paid", GONE)
    )
    assert (was.fingerprint, was.parts) == (now.fingerprint, now.parts)


def test_a_day_that_is_not_in_the_calendar_is_refused(tmp_path: Path) -> None:
    project = write_project(tmp_path, files("{deprecated: 2027-02-30}"))
    with pytest.raises(ProblemsError) as refused:
        compile_project(project)
    (problem,) = refused.value.problems
    assert str(problem.location) == "sql/gold/spend.sql:6:23"


@pytest.mark.parametrize(
    ("sql", "place"),
    [
        ("SELECT s.order_id, s.spend FROM gold.spend AS s", "6:20"),
        ("SELECT\n  order_id,\n  spend + 1 AS more\nFROM gold.spend", "8:3"),
        ("SELECT s.order_id FROM gold.spend AS s WHERE s.spend > 1", "6:46"),
        ("SELECT o.order_id FROM silver.orders AS o JOIN gold.spend AS s USING (order_id)", None),
        ("SELECT s.order_id, s.net FROM gold.spend AS s", None),
        ("SELECT COUNT(*) AS orders FROM gold.spend AS s", None),
        ("SELECT s.net AS spend FROM gold.spend AS s", None),
        (f"SELECT t.spend FROM gold.spend AS s JOIN ({OTHER}) AS t USING (order_id)", None),
    ],
)
def test_a_view_that_reads_it_is_warned(tmp_path: Path, sql: str, place: str | None) -> None:
    found = warnings(tmp_path, sql)
    if place is None:
        assert found == []
        return
    (one,) = found
    assert (one.table, one.column, one.hint) == ("gold.spend", "spend", "Use net.")
    assert str(one.location) == f"sql/gold/reader0.sql:{place}"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "160")
    reader = "SELECT s.order_id, s.spend FROM gold.spend AS s"
    return write_project(tmp_path / "shop", files(GONE, reader))


def tidemark(project: Path, *words: str, typed: str | None = None) -> Any:
    return CliRunner().invoke(app, ["--project", str(project), *words], input=typed)


def test_validation_warns_and_passes(project: Path) -> None:
    told = tidemark(project, "validate")
    assert told.exit_code == 0
    assert "warning: sql/gold/reader0.sql:6:20: " in told.stderr
    assert 'reads column "spend" of gold.spend, which may be removed from 2027-01-31' in told.stderr
    listed = json.loads(tidemark(project, "validate", "--json").stdout)["warnings"]
    assert [one["condition"] for one in listed] == ["DEPRECATED_COLUMN"]


def test_every_description_mentions_the_deprecation(project: Path, tmp_path: Path) -> None:
    manifest = compile_project(project)
    assert TOLD in tidemark(project, "shell", typed=r"\d gold.spend").stdout
    assert TOLD in tidemark(project, "query", "DESCRIBE gold.spend", "--format", "json").stdout
    documented = view_documentation(manifest.gold["spend"], None)
    kind = manifest.gold["spend"].columns[1].type
    assert f"| `spend` | {kind} | {TOLD} |" in documented
    build_site(manifest, tmp_path / "site", project_dir=project)
    page = (tmp_path / "site" / "dictionary" / "gold.spend.html").read_text()
    assert TOLD in html.unescape(page)


def test_explain_mentions_the_deprecation(project: Path) -> None:
    told = tidemark(project, "explain", "spend")
    assert told.exit_code == 0, told.output
    assert "spend: may be removed from 2027-01-31: use net" in told.stdout
    (found,) = json.loads(tidemark(project, "explain", "spend", "--json").stdout)
    assert found["deprecated"] == {"spend": "may be removed from 2027-01-31: use net"}


def test_describe_mentions_the_deprecation_despite_an_older_comment(project: Path) -> None:
    location = Lake(load_settings(project).lake).location(
        compile_project(project).gold["spend"].table_name
    )
    comments = {"order_id": "", "spend": "Paid before", "other": "Of another release."}
    fields = [pa.field(name, pa.int64(), metadata={"comment": c}) for name, c in comments.items()]
    write_deltalake(location, pa.table([[1], [2], [3]], schema=pa.schema(fields)))
    assert [one.description for one in log.schema(location)][1] == "Paid before"
    told = tidemark(project, "query", "DESCRIBE gold.spend", "--format", "json").stdout
    assert TOLD in told
    assert "Of another release." in told
