"""``tidemark watch`` without a JVM: the files that it watches, its output, the chosen cases."""

from __future__ import annotations

import io
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from spark_jobs import settings as settings_module
from spark_jobs.cli import watch as watch_module
from spark_jobs.cli.watch import Rounds, declaration_filter, follow, followed
from spark_jobs.settings import DEMO_FILE, SETTINGS_FILE, Settings, read_settings_file
from spark_jobs.testing.case_files import CASES, SILVER_CASES
from spark_jobs.testing.ended import Ended
from tests.golden.declaration_cases import RIGHT, write_project

SPEND = "sql/gold/spend.sql"
OTHER = RIGHT[SPEND].replace("SUM(o.amount)", "COUNT(*)")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = write_project(tmp_path / "shop", {"sql/gold/counted.sql": OTHER})
    for name in ("spend", "counted.late"):
        (folder / CASES).mkdir(parents=True, exist_ok=True)
        (folder / CASES / f"{name}.yml").write_text("description: A case.\n")
    return folder


class Recorded:
    """Rounds over a project, with what they printed and which cases they would run."""

    def __init__(self, project: Path, directory: Path) -> None:
        self.text = io.StringIO()
        console = Console(file=self.text, width=200)
        self.rounds = Rounds(project, directory, console, test=False)
        self.project = project
        self.rounds.validate()

    def saved(self, file: str, text: str) -> list[str]:
        path = self.project / file
        path.write_text(text)
        validated = self.rounds.validate()
        found = [] if validated is None else self.rounds.cases(validated.manifest, [path])
        self.rounds.run([path])
        return [one.name for one in found]


@pytest.fixture
def recorded(project: Path, tmp_path: Path) -> Recorded:
    return Recorded(project, tmp_path / "work")


def test_a_save_runs_the_cases_of_what_changed(recorded: Recorded) -> None:
    assert recorded.saved(SPEND, RIGHT[SPEND].replace("SUM", "MAX")) == ["spend.yml"]
    # An upstream table: both views read it, and one of them reads the column.
    silver = RIGHT["sql/silver/orders.sql"].replace("amount,", "CAST(amount AS INT) AS amount,")
    assert recorded.saved("sql/silver/orders.sql", silver) == ["spend.yml"]
    assert recorded.saved(f"{CASES}/counted.late.yml", "description: B.\n") == ["counted.late.yml"]
    assert recorded.saved("sources/clicks.yml", RIGHT["sources/clicks.yml"] + "owner: a\n") == []


def test_a_save_runs_the_cases_of_a_silver_table_that_changed(
    recorded: Recorded, project: Path
) -> None:
    (project / SILVER_CASES).mkdir()
    case = f"{SILVER_CASES}/clicks.yml"
    assert recorded.saved(case, "description: A.\n") == ["clicks.yml"]
    source, table = RIGHT["sources/clicks.yml"], RIGHT["sql/silver/clicks.sql"]
    assert recorded.saved("sources/clicks.yml", source + "owner: a\n") == ["clicks.yml"]
    assert recorded.saved("sql/silver/clicks.sql", table.replace("page,", "")) == ["clicks.yml"]
    suite = """{"name": "clicks", "expectations": [
        {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "user_id"}}
    ]}"""
    (project / "expectations/silver").mkdir(parents=True)
    assert recorded.saved("expectations/silver/clicks.json", suite) == ["clicks.yml"]
    assert recorded.saved(SPEND, OTHER) == ["spend.yml"]


def test_an_error_is_printed_and_the_next_round_runs(recorded: Recorded) -> None:
    assert recorded.saved(SPEND, RIGHT[SPEND].replace("o.amount", "o.amuont")) == []
    assert "UNKNOWN_COLUMN" in recorded.text.getvalue()
    assert "1 problem found" in recorded.text.getvalue()
    assert recorded.saved(SPEND, RIGHT[SPEND].replace("SUM", "MIN")) == ["spend.yml"]


def test_a_round_reads_the_settings_once(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []
    lakes: list[Settings] = []

    def read(project_dir: Path, name: str) -> dict[str, Any]:
        reads.append(name)
        return read_settings_file(project_dir, name)

    def run(files: object, manifest: object, settings: Settings, session: object) -> list[Ended]:
        lakes.append(settings)
        return []

    rounds = Rounds(project, tmp_path / "work", Console(file=io.StringIO()), test=True)
    rounds.validate()
    monkeypatch.setattr(settings_module, "read_settings_file", read)
    monkeypatch.setattr(watch_module, "run_files", run)
    (project / SPEND).write_text(RIGHT[SPEND].replace("SUM", "MAX"))
    rounds.run([project / SPEND])
    assert reads == [SETTINGS_FILE, DEMO_FILE]
    assert [one.state for one in lakes] == [tmp_path / "work/1"]


CASE = """\
description: What a user spent.
given:
  silver.orders: |
    order_id | user_id | amount
    1        | 7       | 2.50
    2        | 7       | 0.50
then: |
  user_id | spend
  7       | 3.00
"""


def test_a_case_runs_in_the_process_of_the_watch(project: Path, tmp_path: Path) -> None:
    text = io.StringIO()
    rounds = Rounds(project, tmp_path / "work", Console(file=text, width=200), test=True)
    rounds.validate()
    (project / CASES / "counted.late.yml").unlink()
    file = project / CASES / "spend.yml"
    for amount, word in (("3.00", "passed"), ("4.00", "failed")):
        file.write_text(CASE.replace("3.00", amount))
        rounds.run([file])
        assert f"{word} spend, 1 step, by DuckDB" in text.getvalue()
    rounds.close()


@pytest.mark.parametrize(
    ("file", "watched"),
    [
        ("sql/gold/a.sql", True),
        ("tidemark.yml", True),
        ("tests/cases/gold/a.yml", True),
        ("tests/cases/silver/a.yml", True),
        ("sql/gold/.a.sql.swp", False),
        ("sql/gold/a.sql~", False),
        (".tidemark/lake/gold/a/part-0.parquet", False),
        ("README.md", False),
        ("tests", True),
        ("", False),
    ],
)
def test_only_declarations_are_watched(tmp_path: Path, file: str, watched: bool) -> None:
    assert declaration_filter(tmp_path)(None, str(tmp_path / file)) is watched  # type: ignore[arg-type]


def test_only_folders_of_declarations_are_followed(tmp_path: Path) -> None:
    for name in ("sql/gold", "seeds", "docs", ".tidemark/lake/gold/a", "tests/cases/gold"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "sql/again").symlink_to(tmp_path / "sql")
    names = ("", "seeds", "sql", "sql/gold", "tests", "tests/cases", "tests/cases/gold")
    assert followed(tmp_path) == [tmp_path / name for name in names]


def test_a_folder_that_comes_later_is_followed(tmp_path: Path) -> None:
    class Saves:
        def __init__(self) -> None:
            self.names: set[str] = set()

        def run(self, saved: set[Path]) -> None:
            self.names |= {one.name for one in saved}

    saves, stop = Saves(), threading.Event()
    thread = threading.Thread(
        target=follow, args=(tmp_path, saves), kwargs={"stop": stop}, daemon=True
    )
    thread.start()
    for at in range(100):
        # The folder is made again: that is another directory, of the same name.
        shutil.rmtree(tmp_path / "sql", ignore_errors=True)
        (tmp_path / "sql/gold").mkdir(parents=True)
        time.sleep(1)
        (tmp_path / f"sql/gold/a{at}.sql").touch()
        time.sleep(1)
        if f"a{at}.sql" in saves.names and at:
            break
    stop.set()
    thread.join(30)
    assert f"a{at}.sql" in saves.names
    assert not thread.is_alive()


def test_a_save_starts_a_round(recorded: Recorded) -> None:
    stop = threading.Event()
    thread = threading.Thread(
        target=follow, args=(recorded.project, recorded.rounds), kwargs={"stop": stop}, daemon=True
    )
    thread.start()
    wrong = RIGHT[SPEND].replace("o.amount", "o.amuont")
    # A save before the folder is watched is missed, so the file is written repeatedly.
    for at in range(100):
        (recorded.project / SPEND).write_text(f"{wrong}-- {at}\n")
        time.sleep(0.5)
        if "UNKNOWN_COLUMN" in recorded.text.getvalue():
            break
    stop.set()
    thread.join(30)

    assert "saved: spend.sql" in recorded.text.getvalue()
    assert "UNKNOWN_COLUMN" in recorded.text.getvalue()
    assert not thread.is_alive()
