from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.errors import ProblemsError
from spark_jobs.graph.compile import compile_project
from spark_jobs.graph.manifest import ApplyMode, Expiry, Manifest
from tests.golden.declaration_cases import RIGHT, write_project

HEADER = RIGHT["sql/gold/spend.sql"].partition("*/")[0] + "*/\n"


def compiled(directory: Path, files: dict[str, str | None]) -> Manifest:
    return compile_project(write_project(directory, files))


def fingerprint(directory: Path, select: str) -> str:
    directory.mkdir()
    return compiled(directory, {"sql/gold/spend.sql": HEADER + select}).gold["spend"].fingerprint


SELECT = "SELECT o.user_id, SUM(o.amount) AS spend FROM silver.orders AS o GROUP BY ALL"


@pytest.mark.parametrize(
    "cosmetic",
    [
        "select o.user_id,\n sum( o.amount ) spend -- money\nfrom silver.orders o\ngroup by all",
        SELECT.replace("GROUP BY ALL", "GROUP BY o.user_id"),
        SELECT.replace("o.", "") + ";",
        SELECT.replace("o.", "x.").replace("AS o", "AS x"),
    ],
)
def test_cosmetic_change_keeps_the_fingerprint(tmp_path: Path, cosmetic: str) -> None:
    assert fingerprint(tmp_path / "a", SELECT) == fingerprint(tmp_path / "b", cosmetic)


@pytest.mark.parametrize(
    "change", [SELECT.replace("SUM", "MAX"), SELECT.replace("AS spend", "AS total")]
)
def test_change_of_meaning_changes_the_fingerprint(tmp_path: Path, change: str) -> None:
    files = {"expectations/gold/spend.json": None}
    (tmp_path / "b").mkdir()
    changed = compiled(tmp_path / "b", {**files, "sql/gold/spend.sql": HEADER + change})

    assert fingerprint(tmp_path / "a", SELECT) != changed.gold["spend"].fingerprint


def test_change_of_an_inputs_type_changes_the_fingerprint(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    source = RIGHT["sources/orders.yml"].replace("DECIMAL(12,2)", "DECIMAL(14,2)")
    changed = compiled(tmp_path / "b", {"sources/orders.yml": source}).gold["spend"]

    assert fingerprint(tmp_path / "a", SELECT) != changed.fingerprint


def test_silver_follows_its_source(tmp_path: Path) -> None:
    silver = compiled(tmp_path, {}).silver

    assert silver["orders"].apply is ApplyMode.UPSERT
    assert silver["orders"].keys == ("order_id",)
    assert silver["orders"].apply_as_deletes == "__op = 'd'"
    assert silver["clicks"].apply is ApplyMode.APPEND
    assert silver["clicks"].event_id == "event_id"
    assert silver["clicks"].projection == "SELECT event_id, user_id, page, at FROM source AS clicks"


def test_rows_expire_by_the_time_of_their_event_or_by_a_column_that_is_named(
    tmp_path: Path,
) -> None:
    orders, clicks = RIGHT["sql/silver/orders.sql"], RIGHT["sql/silver/clicks.sql"]
    lasting = {
        "sql/silver/orders.sql": orders.replace("*/", "ttl: 2 weeks\nexpire_by: Created_At\n*/"),
        "sql/silver/clicks.sql": clicks.replace("*/", "ttl: 90 days\non_expiry: retract\n*/"),
    }
    (tmp_path / "plain").mkdir()
    (tmp_path / "lasting").mkdir()
    silver = compiled(tmp_path / "lasting", lasting).silver

    assert silver["orders"].expiry == Expiry(column="created_at", days=14)
    assert silver["clicks"].expiry == Expiry(column="at", days=90)
    before = compiled(tmp_path / "plain", {}).silver["orders"]
    assert (before.expiry, before.fingerprint) == (None, silver["orders"].fingerprint)


def test_views_over_views_have_tiers(tmp_path: Path) -> None:
    above = HEADER + "SELECT user_id FROM gold.spend WHERE spend > 10"
    gold = compiled(tmp_path, {"sql/gold/big.sql": above}).gold

    assert (gold["spend"].tier, gold["big"].tier) == (0, 1)
    assert gold["spend"].downstream == ("big",)
    assert gold["big"].upstream == ("spend",)


def test_delta_source_asks_for_its_columns(tmp_path: Path) -> None:
    files = {
        "sources/lake.yml": "format: delta\nlocation: ../lake/x\n",
        "sql/gold/view.sql": HEADER + "SELECT id FROM bronze.lake",
    }
    project = write_project(tmp_path / "p", files)
    manifest = compile_project(project, delta_schema=lambda _: {"id": "bigint"})

    assert manifest.sources["lake"].location == str(tmp_path / "lake/x")
    assert manifest.gold["view"].columns[0].type == "bigint"


def test_a_column_that_a_delta_table_lacks_is_named(tmp_path: Path) -> None:
    files = {
        "sources/lake.yml": "format: delta\nlocation: ../lake/x\n",
        "sql/gold/view.sql": HEADER + "SELECT amt FROM bronze.lake",
    }
    project = write_project(tmp_path / "p", files)
    with pytest.raises(ProblemsError) as caught:
        compile_project(project, delta_schema=lambda _: {"id": "bigint", "amount": "int"})

    (problem,) = caught.value.problems
    assert problem.condition == "UNKNOWN_COLUMN"
    assert problem.hint == 'Did you mean "amount"?'


def test_an_unknown_column_is_reported_beside_a_missing_table(tmp_path: Path) -> None:
    files = {
        "sources/lake.yml": "format: delta\nlocation: /no/table\n",
        "sql/gold/view.sql": HEADER
        + "SELECT o.amt, k.anything, whatever FROM silver.orders AS o JOIN bronze.lake AS k",
    }
    with pytest.raises(ProblemsError) as caught:
        compiled(tmp_path, files)

    found = [problem.condition for problem in caught.value.problems]
    assert found == ["DELTA_SCHEMA", "UNKNOWN_COLUMN"]


@pytest.mark.parametrize(
    ("select", "conditions"),
    [
        ("SELECT * FROM bronze.lake ORDER BY 1", "DELTA_SCHEMA SELECT_STAR"),
        ("SELECT k.* FROM bronze.lake AS k GROUP BY 1", "DELTA_SCHEMA SELECT_STAR"),
        ("SELECT * EXCEPT (a) FROM bronze.lake ORDER BY 1", "DELTA_SCHEMA SELECT_STAR"),
        (
            "SELECT * FROM bronze.lake UNION ALL SELECT * FROM bronze.lake ORDER BY 1",
            "DELTA_SCHEMA SELECT_STAR",
        ),
        ("SELECT * FROM silver.nothing ORDER BY 1", "DELTA_SCHEMA SELECT_STAR UNKNOWN_TABLE"),
        ("SELECT t.id FROM (SELECT * FROM RANGE(3) ORDER BY 1) AS t", "DELTA_SCHEMA POSITION"),
    ],
)
def test_a_position_of_a_star_that_is_not_known(
    tmp_path: Path, select: str, conditions: str
) -> None:
    files = {
        "sources/lake.yml": "format: delta\nlocation: /no/table\n",
        "sql/gold/view.sql": HEADER + select,
    }
    with pytest.raises(ProblemsError) as caught:
        compiled(tmp_path, files)

    found = [problem.condition for problem in caught.value.problems]
    assert sorted(found) == conditions.split()


def test_all_problems_come_at_once(tmp_path: Path) -> None:
    files = {
        "sources/clicks.yml": RIGHT["sources/clicks.yml"].replace("topic", "topik"),
        "sql/gold/spend.sql": RIGHT["sql/gold/spend.sql"]
        .replace("owner", "ownr")
        .replace("SUM", "SUMM"),
    }
    with pytest.raises(ProblemsError) as caught:
        compiled(tmp_path, files)

    found = {problem.condition for problem in caught.value.problems}
    assert found == {"UNKNOWN_KEY", "MISSING_KEY", "UNKNOWN_FUNCTION"}


def test_manifest_survives_the_file(tmp_path: Path) -> None:
    manifest = compiled(tmp_path, {})
    manifest.write(tmp_path / "state/manifest.json")

    assert Manifest.read(tmp_path / "state/manifest.json") == manifest
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["manifest.json"]


def test_period_can_be_replaced(tmp_path: Path) -> None:
    manifest = compile_project(write_project(tmp_path, {}), every_override="1 minute")

    assert manifest.gold["spend"].every_seconds == 60


def test_period_can_be_replaced_for_some_views(tmp_path: Path) -> None:
    project = write_project(
        tmp_path, {"sql/gold/other.sql": HEADER + "SELECT user_id FROM silver.orders"}
    )
    gold = compile_project(project, every_override="1 minute", scheduled_at_first=["spend"]).gold

    assert (gold["spend"].every_seconds, gold["other"].every_seconds) == (60, 900)


def test_a_view_that_shall_be_scheduled_at_first_has_to_be_there(tmp_path: Path) -> None:
    project = write_project(tmp_path, {})
    with pytest.raises(ProblemsError) as caught:
        compile_project(project, scheduled_at_first=["spent"])

    assert [problem.condition for problem in caught.value.problems] == ["SETTING"]


def test_bounds_of_time_windows_are_instants(tmp_path: Path) -> None:
    select = (
        "SELECT WINDOW(o.created_at, '1 hour').start AS since, "
        "SESSION_WINDOW(o.created_at, '1 hour').end AS until, "
        "WINDOW(CAST(o.created_at AS TIMESTAMP_NTZ), '1 hour').end AS local "
        "FROM silver.orders AS o GROUP BY ALL"
    )
    view = compiled(tmp_path, {"sql/gold/v.sql": HEADER + select}).gold["v"]

    assert [(one.name, one.type) for one in view.columns] == [
        ("since", "timestamp"),
        ("until", "timestamp"),
        ("local", ""),
    ]
