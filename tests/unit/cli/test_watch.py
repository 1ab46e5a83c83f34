"""``tidemark watch`` without a JVM: what it looks at, says, and would run."""

from __future__ import annotations

import io
import threading
import time
from pathlib import Path

import pytest
from rich.console import Console

from spark_jobs.cli.watch import Rounds, declares, follow
from spark_jobs.testing.case_files import CASES
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


class Told:
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
        manifest = self.rounds.validate()
        found = [] if manifest is None else self.rounds.cases(manifest, [path])
        self.rounds.run([path])
        return [one.name for one in found]


@pytest.fixture
def told(project: Path, tmp_path: Path) -> Told:
    return Told(project, tmp_path / "work")


def test_a_save_runs_the_cases_of_what_changed(told: Told) -> None:
    assert told.saved(SPEND, RIGHT[SPEND].replace("SUM", "MAX")) == ["spend.yml"]
    # A table above: both views read it, and one of them reads the column.
    silver = RIGHT["sql/silver/orders.sql"].replace("amount,", "CAST(amount AS INT) AS amount,")
    assert told.saved("sql/silver/orders.sql", silver) == ["spend.yml"]
    assert told.saved(f"{CASES}/counted.late.yml", "description: B.\n") == ["counted.late.yml"]
    assert told.saved("sources/clicks.yml", RIGHT["sources/clicks.yml"] + "owner: a\n") == []


def test_a_mistake_is_told_and_the_next_round_goes_on(told: Told) -> None:
    assert told.saved(SPEND, RIGHT[SPEND].replace("o.amount", "o.amuont")) == []
    assert "UNKNOWN_COLUMN" in told.text.getvalue()
    assert "1 problem found" in told.text.getvalue()
    assert told.saved(SPEND, RIGHT[SPEND].replace("SUM", "MIN")) == ["spend.yml"]


@pytest.mark.parametrize(
    ("file", "looked_at"),
    [
        ("sql/gold/a.sql", True),
        ("tidemark.yml", True),
        ("tests/cases/gold/a.yml", True),
        ("sql/gold/.a.sql.swp", False),
        ("sql/gold/a.sql~", False),
        (".tidemark/lake/gold/a/part-0.parquet", False),
        ("README.md", False),
    ],
)
def test_only_declarations_are_looked_at(tmp_path: Path, file: str, looked_at: bool) -> None:
    assert declares(tmp_path)(None, str(tmp_path / file)) is looked_at  # type: ignore[arg-type]


def test_a_save_begins_a_round(told: Told) -> None:
    stop = threading.Event()
    thread = threading.Thread(
        target=follow, args=(told.project, told.rounds), kwargs={"stop": stop}, daemon=True
    )
    thread.start()
    wrong = RIGHT[SPEND].replace("o.amount", "o.amuont")
    # A save before the folder is watched is not seen, so it comes again.
    for at in range(100):
        (told.project / SPEND).write_text(f"{wrong}-- {at}\n")
        time.sleep(0.5)
        if "UNKNOWN_COLUMN" in told.text.getvalue():
            break
    stop.set()
    thread.join(30)

    assert "saved: spend.sql" in told.text.getvalue()
    assert "UNKNOWN_COLUMN" in told.text.getvalue()
    assert not thread.is_alive()
