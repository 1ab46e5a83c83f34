"""The limit of lines of a module, from CONTRIBUTING.md."""

from __future__ import annotations

from spark_jobs.settings import REPOSITORY

FOLDERS = ("spark_jobs", "dags", "scripts", "benchmarks")
MOST_LINES = 400


def test_no_module_is_longer_than_the_limit() -> None:
    lengths = {
        str(path.relative_to(REPOSITORY)): len(path.read_text("utf-8").splitlines())
        for folder in FOLDERS
        for ending in ("*.py", "*.java")
        for path in (REPOSITORY / folder).rglob(ending)
    }
    too_long = {name: lines for name, lines in lengths.items() if lines > MOST_LINES}

    assert {name.split("/")[0] for name in lengths} == set(FOLDERS)
    assert not too_long, (
        f"longer than {MOST_LINES} lines: {too_long}. Move one responsibility of the module into "
        "a new module beside it, and import from there; do not only remove comments."
    )
