"""``tidemark plan`` and ``apply`` over Delta tables alone: no service, no JVM."""

from __future__ import annotations

import errno
import io
import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from rich.console import Console

from spark_jobs.cli.plan import CHANGES
from spark_jobs.deploy.change import Action, Category, Change, Cost, Kind, Work
from spark_jobs.deploy.errors import NotConfirmedError, NotKeptError, StreamRunsError
from spark_jobs.deploy.kept_settings import kept_settings
from spark_jobs.deploy.plan import Plan
from spark_jobs.deploy.steps import Step, StepKind
from spark_jobs.serving.report.plan_table import plan_view
from spark_jobs.settings import load_settings
from spark_jobs.silver.store import lock
from spark_jobs.state.errors import TableLockedError
from spark_jobs.state.locks import table_lock
from spark_jobs.state.pinned_views import PinnedView
from spark_jobs.state.progress import StreamState
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import utc_now
from spark_jobs.storage.errors import FilesRemainError
from spark_jobs.storage.in_force import deployment_of
from spark_jobs.storage.lake import lock_directory
from tests.unit.deploy.in_force import in_force, tidemark

VIEW = """\
/* gold
description: Spend per user.
owner: tests
refresh: bulk
*/
SELECT o.user_id, SUM(o.amount) AS spend
FROM bronze.orders AS o
GROUP BY o.user_id
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    folder = tmp_path / "shop"
    rows = {"user_id": pa.array([1, 2], pa.int64()), "amount": pa.array([1, 2], pa.int64())}
    write_deltalake(folder / "data" / "orders", pa.table(rows))
    for name, text in {
        "sources/orders.yml": "format: delta\nlocation: data/orders\n",
        "sql/gold/spend.sql": VIEW,
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_the_first_plan_lists_all_changes_with_their_cost(project: Path) -> None:
    result = tidemark(project, "plan", "--json")
    found = json.loads(result.stdout)

    assert result.exit_code == CHANGES
    assert found["base"] is None
    assert [(one["name"], one["action"]) for one in found["changes"]] == [
        ("orders", "added"),
        ("gold.spend", "added"),
    ]
    assert found["changes"][1]["cost"] == {"rows": 2, "seconds": None}
    assert found["steps"] == ["manifest", "build gold.spend"]


def seed_text(form: str, rows: dict[int, str]) -> str:
    if form == "csv":
        return "k,v\n" + "".join(f"{k},{v}\n" for k, v in rows.items())
    return "".join(json.dumps({"k": k, "v": v}) + "\n" for k, v in rows.items())


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_changed_file_is_planned_and_loaded_before_what_reads_it(
    project: Path, form: str
) -> None:
    source = f"format: {form}\npath: seeds/rates.{form}\nkeys: k\ncolumns: {{k: INT, v: STRING}}\n"
    (project / "sources/rates.yml").write_text(source)
    file = project / "seeds" / f"rates.{form}"
    file.parent.mkdir()
    file.write_text(seed_text(form, {1: "a"}))
    in_force(project)
    assert tidemark(project, "plan").exit_code == 0

    file.write_text(seed_text(form, {1: "b", 2: "c"}))
    found = json.loads(tidemark(project, "plan", "--json").stdout)
    assert [(one["name"], one["details"]) for one in found["changes"]] == [
        ("rates", ["digest changed"])
    ]
    assert found["steps"] == ["manifest", "seed rates"]

    applied = tidemark(project, "apply")
    assert applied.exit_code == 0, applied.output
    table = DeltaTable(f"{load_settings(project).lake}/bronze/rates")
    assert sorted(table.to_pyarrow_table().column("v").to_pylist()) == ["b", "c"]
    assert tidemark(project, "plan").exit_code == 0


def test_a_file_may_get_another_format_and_another_key(project: Path) -> None:
    columns = "columns: {k: INT, v: STRING}\n"
    (project / "sources/rates.yml").write_text(
        f"format: csv\npath: seeds/rates.csv\nkeys: k\n{columns}"
    )
    folder = project / "seeds"
    folder.mkdir()
    (folder / "rates.csv").write_text("k,v\n1,a\n2,\n")
    in_force(project)
    assert tidemark(project, "seed").exit_code == 0
    (project / "sources/rates.yml").write_text(
        f"format: jsonl\npath: seeds/rates.jsonl\nkeys: v\n{columns}"
    )
    (folder / "rates.jsonl").write_text('{"k": 1, "v": "a"}\n{"k": 1, "v": "b"}\n')

    applied = tidemark(project, "apply")
    assert applied.exit_code == 0, applied.exception
    table = DeltaTable(f"{load_settings(project).lake}/bronze/rates")
    assert sorted(table.to_pyarrow_table().column("v").to_pylist()) == ["a", "b"]


def test_the_exit_code_says_whether_there_is_something_to_do(project: Path) -> None:
    in_force(project)
    assert tidemark(project, "plan").exit_code == 0
    (project / "sql/gold/spend.sql").write_text(VIEW.replace("SUM", "MAX"))
    result = tidemark(project, "plan")

    assert result.exit_code == CHANGES
    assert "gold.spend" in result.stdout
    assert "breaking" in result.stdout


def test_a_contract_is_held_until_a_person_breaks_it(project: Path) -> None:
    promised = VIEW.replace("owner: tests", "owner: tests\ncontract: strict")
    (project / "sql/gold/spend.sql").write_text(promised)
    in_force(project)
    (project / "sql/gold/spend.sql").write_text(promised.replace("AS spend", "AS spent"))

    assert tidemark(project, "validate").exit_code == 1
    assert tidemark(project, "validate", "--break-contract", "spend").exit_code == 0
    refused = tidemark(project, "plan")
    assert refused.exit_code == 1
    assert "spend becomes spent [CONTRACT_BROKEN]" in refused.output
    assert tidemark(project, "plan", "--break-contract", "gold.spend").exit_code == CHANGES


def test_wrong_files_are_reported_before_the_comparison(project: Path) -> None:
    (project / "sql/gold/spend.sql").write_text(VIEW.replace("user_id, ", "user, "))
    result = tidemark(project, "plan")

    assert result.exit_code == 1
    assert getattr(result.exception, "condition", None) == "PROBLEMS"


def test_an_edit_changes_nothing_that_runs(project: Path) -> None:
    in_force(project)
    settings = load_settings(project)
    before = settings.manifest_file.read_bytes()
    (project / "sql/gold/spend.sql").write_text(VIEW.replace("SUM", "MAX"))
    assert tidemark(project, "compile").exit_code == 0
    assert tidemark(project, "status").exit_code in {0, 1}
    assert tidemark(project, "explain", "spend").exit_code == 0

    assert settings.manifest_file.read_bytes() == before
    assert deployment_of(settings.manifest_file) == "d1-tests"


def test_apply_without_a_terminal_does_not_confirm_itself(project: Path) -> None:
    result = tidemark(project, "apply", "--no-spark")

    assert isinstance(result.exception, NotConfirmedError)
    with ControlStore.open(load_settings(project).control_url) as store:
        assert store.newest_deployment() is None


def test_a_suite_is_applied_without_a_question(project: Path) -> None:
    in_force(project)
    suite = {
        "name": "spend",
        "expectations": [
            {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "user_id"}}
        ],
    }
    file = project / "expectations/gold/spend.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(suite))
    result = tidemark(project, "apply")

    assert result.exit_code == 0, result.output
    assert "is applied" in result.stdout
    settings = load_settings(project)
    assert deployment_of(settings.manifest_file) != "d1-tests"
    assert tidemark(project, "plan").exit_code == 0


def test_settings_alone_are_left_to_the_stack(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_force(project)
    monkeypatch.setenv("TIDEMARK_GOLD__CLOCK_SECONDS", "77")
    planned = tidemark(project, "plan", "--json")
    applied = tidemark(project, "apply")
    answered = tidemark(project, "apply", "--json")

    assert json.loads(answered.stdout)["plan"]["steps"] == []
    assert planned.exit_code == CHANGES
    [change] = json.loads(planned.stdout)["changes"]
    assert (change["name"], change["details"]) == ("gold.clock_seconds", ["unset → 77.0"])
    assert "stack up" in applied.stdout
    assert tidemark(project, "plan").exit_code == CHANGES


def test_secrets_are_kept_as_digests(tmp_path: Path) -> None:
    settings = load_settings(tmp_path, source_database="postgresql://a:secret@db/shop")
    kept = kept_settings(settings)

    assert "secret" not in json.dumps(kept)
    other = load_settings(tmp_path, source_database="postgresql://a:other@db/shop")
    assert kept_settings(other)["source_database"] != kept["source_database"]


def kept_table(project: Path) -> Path:
    """The table of a view that was removed from the project."""
    in_force(project)
    table = Path(load_settings(project).lake) / "gold" / "spend"
    write_deltalake(table, pa.table({"user_id": [1]}))
    (project / "sql/gold/spend.sql").unlink()
    assert tidemark(project, "apply", "--yes").exit_code == 0
    return table


def test_a_removed_view_is_kept_until_it_is_dropped(project: Path) -> None:
    in_force(project)
    settings = load_settings(project)
    table = Path(settings.lake) / "gold" / "spend"
    write_deltalake(table, pa.table({"user_id": pa.array([1], pa.int64())}))
    assert isinstance(tidemark(project, "drop", "gold.spend", "--yes").exception, NotKeptError)
    (project / "sql/gold/spend.sql").unlink()
    assert tidemark(project, "apply", "--yes").exit_code == 0
    assert "gold.spend" in tidemark(project, "plan").stdout
    assert table.exists()
    assert isinstance(tidemark(project, "drop", "gold.spend").exception, NotConfirmedError)
    assert tidemark(project, "drop", "gold.spend", "--yes").exit_code == 0
    assert not table.exists()
    assert "gold.spend" not in tidemark(project, "plan").stdout


def test_what_is_dropped_for_programs(project: Path) -> None:
    kept_table(project)
    done = tidemark(project, "drop", "gold.spend", "--yes", "--json")
    assert json.loads(done.stdout) == [{"table": "gold.spend", "deleted": True}]
    assert done.stderr == "gold.spend is deleted.\n"


def test_a_view_whose_files_stay_is_not_told_to_be_deleted(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a lake that belongs to another account."""
    table = kept_table(project)

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "part-0.parquet")

    with monkeypatch.context() as patch:
        patch.setattr("os.unlink", refused)
        done = tidemark(project, "drop", "gold.spend", "--yes")
    assert isinstance(done.exception, FilesRemainError)
    assert "is deleted" not in done.output
    # It is still known, so the same command deletes it later.
    assert tidemark(project, "drop", "gold.spend", "--yes").exit_code == 0
    assert not table.exists()


def test_a_table_that_is_being_written_is_not_deleted_meanwhile(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refresh that began before the apply may still publish it."""
    settings = load_settings(project)
    table = kept_table(project)
    monkeypatch.setattr(lock, "WAIT_SECONDS", 0.0)
    with table_lock(lock_directory(settings.lake, settings.state), "gold.spend"):
        done = tidemark(project, "drop", "gold.spend", "--yes")
        assert isinstance(done.exception, TableLockedError)
        assert table.exists()
    assert tidemark(project, "drop", "gold.spend", "--yes").exit_code == 0
    assert not table.exists()


def test_a_table_that_the_streams_still_write_is_not_deleted(project: Path) -> None:
    """The step that stops a stream may have ended by its time limit."""
    settings = load_settings(project)
    table = kept_table(project)
    with ControlStore.open(settings.control_url) as store:
        store.record_heartbeat("gold.spend", at=utc_now())
        done = tidemark(project, "drop", "gold.spend", "--yes")
        assert isinstance(done.exception, StreamRunsError)
        assert table.exists()
        store.record_heartbeat("gold.spend", at=utc_now(), state=StreamState.STOPPED)
    assert tidemark(project, "drop", "gold.spend", "--yes").exit_code == 0
    assert not table.exists()


def test_rejected_lines_of_a_file_are_dropped_with_its_table(project: Path) -> None:
    source = project / "sources/rates.yml"
    source.write_text(
        "format: csv\npath: seeds/rates.csv\nkeys: k\nmost_rejected: 1\n"
        "columns: {k: INT, v: STRING}\n"
    )
    (project / "seeds").mkdir()
    (project / "seeds/rates.csv").write_text("k,v\nAnn Smith,a\n2,b\n")
    in_force(project)
    assert tidemark(project, "seed").exit_code == 0
    lake = Path(load_settings(project).lake)
    assert list((lake / "_quarantine").iterdir())
    source.unlink()
    assert tidemark(project, "apply", "--yes").exit_code == 0
    assert tidemark(project, "drop", "bronze.rates", "--yes").exit_code == 0

    assert not list((lake / "bronze").glob("rates"))
    assert not list((lake / "_quarantine").iterdir())


def test_an_external_table_is_not_offered_for_deletion(project: Path) -> None:
    source = project / "sources/more.yml"
    source.write_text("format: delta\nlocation: data/orders\n")
    in_force(project)
    source.unlink()
    assert tidemark(project, "apply", "--yes").exit_code == 0

    assert json.loads(tidemark(project, "plan", "--json").stdout)["kept"] == {}
    assert isinstance(tidemark(project, "drop", "bronze.more", "--yes").exception, NotKeptError)


def test_a_dropped_view_is_no_longer_pinned(project: Path) -> None:
    in_force(project)
    settings = load_settings(project)
    pinned = PinnedView(view="spend", version=3, who="ann", reason="wrong", replay_id="r1")
    with ControlStore.open(settings.control_url) as store:
        store.pin_view(pinned)
        (project / "sql/gold/spend.sql").unlink()
        assert tidemark(project, "apply", "--yes").exit_code == 0
        assert store.pinned_views().keys() == {"spend"}
        # A name that is given twice is dropped once.
        assert tidemark(project, "drop", "gold.spend", "gold.spend", "--yes").exit_code == 0
        assert not store.pinned_views()


NAMES = ("gold.order_inventory_match_of_the_last_hour_by_country", "gold.user_order_stats")


@pytest.mark.parametrize("width", [80, 120])
def test_the_plan_fits_the_terminal(width: int) -> None:
    changes = tuple(
        Change(
            kind=Kind.GOLD,
            name=name,
            action=Action.CHANGED,
            category=Category.NON_BREAKING,
            work=(Work.RECOMPUTE,),
            details=("columns changed: amount, segment, country",),
            reaches=tuple(f"gold.reader_number_{at}" for at in range(9)),
            cost=Cost(rows=1_234_567, seconds=12.3),
        )
        for name in NAMES
    )
    steps = tuple(Step(StepKind.BUILD, name) for name in NAMES)
    plan = Plan(project="shop", base="d1-tests", changes=changes, steps=steps)
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(plan_view(plan))
    text = console.export_text()

    assert max(map(len, text.splitlines())) <= width
    # In the table, and in the step.
    assert [text.count(name) for name in NAMES] == [2, 2]
    assert "columns changed: amount, segment, country" in " ".join(text.split())
    if width == 120:
        # Narrower, this is broken between two lines.
        assert "and 3 more" in text
