"""Views that did not change are not compiled again, and all others are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spark_jobs.errors import LakehouseError
from spark_jobs.graph import compile_cache, compile_views
from spark_jobs.graph.compile import read_project
from spark_jobs.graph.compile_cache import CompileCache, code_digest
from spark_jobs.graph.manifest import Manifest
from tests.golden.declaration_cases import RIGHT, write_project

SPEND = "sql/gold/spend.sql"
HEADER = RIGHT[SPEND].partition("*/")[0] + "*/\n"
READER = HEADER + "SELECT s.user_id, s.spend FROM gold.spend AS s"
FILES = {
    "sql/gold/reader.sql": READER,
    "sql/gold/other.sql": HEADER + "SELECT c.page FROM silver.clicks AS c",
}


class Project:
    """A project that is compiled again and again with one cache."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = write_project(folder, {**FILES, "expectations/gold/spend.json": None})
        self.cache = CompileCache()
        self.compiled: list[str] = []
        original = compile_views.compile_gold

        def counted(definition, *args, **kwargs):  # type: ignore[no-untyped-def]
            self.compiled.append(definition.name)
            return original(definition, *args, **kwargs)

        monkeypatch.setattr(compile_views, "compile_gold", counted)

    def read(self) -> tuple[Manifest, list[LakehouseError]]:
        """Compile it; the same as without a cache."""
        self.compiled.clear()
        found = read_project(self.folder, cache=self.cache)
        again = list(self.compiled)
        fresh = read_project(self.folder)
        assert found[0] == fresh[0]
        assert [one.render() for one in found[1]] == [one.render() for one in fresh[1]]
        self.compiled = again
        self.cache = CompileCache.parse(self.cache.text())
        return found

    def write(self, file: str, text: str) -> None:
        (self.folder / file).write_text(text)

    def replace(self, file: str, old: str, new: str) -> None:
        text = (self.folder / file).read_text()
        assert old in text
        self.write(file, text.replace(old, new))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    found = Project(tmp_path, monkeypatch)
    manifest, problems = found.read()
    assert not problems
    assert sorted(found.compiled) == sorted(manifest.gold) == ["other", "reader", "spend"]
    return found


def test_nothing_is_compiled_twice(project: Project) -> None:
    project.read()
    assert project.compiled == []
    assert not project.cache.changed


@pytest.mark.parametrize(
    ("file", "old", "new", "again"),
    [
        (SPEND, "SUM(o.amount) AS spend", "MAX(o.amount) + SUM(0) AS spend", ["reader", "spend"]),
        (SPEND, "GROUP BY", "WHERE o.order_id > 0 GROUP BY", ["spend"]),
        (SPEND, "SUM(o.amount) AS spend", "COUNT(*) AS spend", ["reader", "spend"]),
        ("sql/gold/reader.sql", "s.spend", "2 * s.spend AS spend", ["reader"]),
        ("sources/orders.yml", "DECIMAL(12,2)", "DECIMAL(14,2)", ["reader", "spend"]),
        ("sql/silver/clicks.sql", "page", "UPPER(page) AS page", []),
    ],
)
def test_a_change_compiles_the_view_and_those_that_see_it(
    project: Project, file: str, old: str, new: str, again: list[str]
) -> None:
    project.replace(file, old, new)
    project.read()
    assert sorted(project.compiled) == again


def test_a_description_reaches_the_views_that_inherit_it(project: Project) -> None:
    project.replace(SPEND, "AS spend", "AS spend -- money")
    manifest, _ = project.read()
    assert sorted(project.compiled) == ["reader", "spend"]
    column = next(one for one in manifest.gold["reader"].columns if one.name == "spend")
    assert column.description == "money"


def test_problems_are_found_in_every_run(project: Project) -> None:
    project.replace(SPEND, "o.amount", "o.amuont")
    for _ in range(2):
        _, problems = project.read()
        assert [one.condition for one in problems] == ["UNKNOWN_COLUMN"]
        assert "spend" in project.compiled


def test_an_input_that_goes_is_missed_by_an_unchanged_view(project: Project) -> None:
    (project.folder / SPEND).unlink()
    manifest, problems = project.read()
    assert [one.condition for one in problems] == ["UNKNOWN_TABLE"]
    assert "reader" not in manifest.gold
    assert sorted(project.cache.views) == ["other", "reader"]


def test_a_limit_is_checked_with_views_from_the_cache(project: Project) -> None:
    from spark_jobs.sections import GraphSettings

    limits = GraphSettings(most_tiers=1)
    _, problems = read_project(project.folder, cache=project.cache, limits=limits)
    _, fresh = read_project(project.folder, limits=limits)
    assert [one.render() for one in problems] == [one.render() for one in fresh] != []


def test_another_compiler_starts_anew(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    text = project.cache.text()
    monkeypatch.setattr(compile_cache, "code_digest", lambda: "another")
    assert CompileCache.parse(text).views == {}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"code": "a", "views": {"a": {}}}'])
def test_what_is_no_cache_is_an_empty_one(text: str) -> None:
    assert CompileCache.parse(text) == CompileCache()


def test_the_compiler_s_digest_follows_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def digest() -> str:
        code_digest.cache_clear()
        return code_digest()

    known = digest()
    monkeypatch.setattr(compile_cache, "_PACKAGE", tmp_path)
    (tmp_path / "graph").mkdir()
    (tmp_path / "graph/a.py").write_text("a = 1")
    found = digest()
    (tmp_path / "graph/a.py").write_text("a = 2")
    os.utime(tmp_path / "graph/a.py", ns=(1, 1))
    assert len({known, found, digest()}) == 3
    monkeypatch.undo()
    assert digest() == known
