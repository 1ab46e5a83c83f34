"""The built site: complete, without dead ends, and its words are words."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_jobs.graph.compile import compile_project
from spark_jobs.serving.dictionary.errors import (
    PageTakenError,
    SiteBrokenError,
    SiteDirectoryTakenError,
)
from spark_jobs.serving.dictionary.pages import table_page
from spark_jobs.serving.dictionary.site import build_site
from spark_jobs.serving.dictionary.tables import Dictionary
from spark_jobs.settings import REPOSITORY
from spark_jobs.storage.lake import Lake
from tests.golden.declaration_cases import RIGHT, write_project
from tests.shipped import shipped_project

HOSTILE = (
    """<script>alert(1)</script> <img src=x onerror=alert(2)> [a](javascript:alert(3)) | `b` """
    """**c** ![d](http://example.com/e.png) {{ f }} &lt; # g <!-- h --> __i__ """
)
QUOTED = "'" + HOSTILE.replace("'", "''") + "'"


class Page(HTMLParser):
    def __init__(self, file: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.text += data

    @cached_property
    def ids(self) -> set[str]:
        return {attributes["id"] for _, attributes in self.tags if "id" in attributes}

    def links(self) -> Iterator[tuple[str, str]]:
        for tag, attributes in self.tags:
            for key in ("href", "src"):
                if key in attributes:
                    yield tag, attributes[key]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of this repository."""
    target = tmp_path_factory.mktemp("shop") / "site"
    build_site(shipped_project(), target, project_dir=REPOSITORY)
    return target


def test_every_table_has_a_page_that_the_overview_names(shop: Path):
    manifest = shipped_project()
    entries = [*manifest.sources.values(), *manifest.silver.values(), *manifest.gold.values()]
    named = {address for _, address in Page(shop / "dictionary/index.html").links()}

    for entry in entries:
        page = Page(shop / f"dictionary/{entry.table_name}.html")
        assert f"{entry.table_name}.html" in named
        assert all(column.name in page.text for column in entry.columns)


def test_every_written_page_is_there(shop: Path):
    for page in Path(REPOSITORY, "docs").rglob("*.md"):
        built = shop / page.relative_to(REPOSITORY / "docs").with_suffix(".html")
        assert built.exists() or (
            built.name == "README.html" and (built.parent / "index.html").exists()
        )


def test_no_link_leads_nowhere_and_nothing_is_loaded_from_elsewhere(shop: Path):
    pages = {file.resolve(): Page(file) for file in shop.rglob("*.html") if file.name != "404.html"}
    for file, page in pages.items():
        for tag, address in dict.fromkeys(page.links()):
            parts = urlsplit(address)
            if parts.scheme == "data":
                continue
            if parts.scheme or parts.netloc:
                assert tag == "a", f"{file.name} loads {address}"
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            assert target.exists(), f"{file.name} leads to {address}"
            if parts.fragment and target in pages:
                assert unquote(parts.fragment) in pages[target].ids, f"{file.name}: {address}"


def test_a_page_shows_lineage_strategy_and_expectations(shop: Path):
    page = Page(shop / "dictionary/gold.user_revenue.html")

    assert "aggregate state: changes are added to it" in page.text
    assert "expect_column_values_to_not_be_null" in page.text
    assert "Total amount of the active orders of the user." in page.text
    assert ("a", "gold.active_orders.html") in set(page.links())
    assert any(tag == "svg" for tag, _ in page.tags)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    return write_project(
        tmp_path,
        {
            "sql/gold/spend.sql": f"""\
/* gold
description: {QUOTED}
owner: {QUOTED}
tags: [{QUOTED}]
refresh: bulk
columns:
  spend: {QUOTED}
*/
SELECT o.user_id, SUM(o.amount) AS spend, '```' AS fence, '</code></pre><script>' AS tag
FROM silver.orders AS o
GROUP BY ALL
""",
            "sources/clicks.yml": f"""\
description: {QUOTED}
format: json
topic: clicks
event_id: event_id
event_time: at
columns:
  event_id: {{type: STRING, description: {QUOTED}}}
  user_id: BIGINT
  page: STRING
  at: TIMESTAMP
""",
            "expectations/gold/spend.json": """\
{"name": "spend", "expectations": [
  {"type": "expect_column_values_to_be_in_set", "meta": {"notes": "<script>x</script>"},
   "kwargs": {"column": "user_id", "value_set": ["<script>", "a|b"]}}
]}
""",
        },
    )


def build(project: Path, target: Path, lake: Lake | None = None) -> None:
    build_site(compile_project(project), target, project_dir=project, lake=lake)


def test_words_of_declarations_and_rows_are_words(hostile: Path, tmp_path: Path):
    lake = Lake(str(tmp_path / "lake"))
    rows = pa.table({"user_id": [1, None], "spend": ["<script>bad</script>", HOSTILE]})
    write_deltalake(lake.location(compile_project(hostile).gold["spend"].table_name), rows)
    build(hostile, tmp_path / "site", lake)

    plain = Page(tmp_path / "site/dictionary/silver.orders.html")
    for name in ("gold.spend", "bronze.clicks"):
        page = Page(tmp_path / f"site/dictionary/{name}.html")
        assert page.text.count(" ".join(HOSTILE.split())) >= 2
        for tag in ("script", "img", "strong", "em"):
            found = [attributes for kind, attributes in page.tags if kind == tag]
            assert len(found) == len([None for kind, _ in plain.tags if kind == tag]), tag
        assert not any(name.startswith("on") for _, found in page.tags for name in found)
        assert not any("javascript:" in address for _, address in page.links())
    text = Page(tmp_path / "site/dictionary/gold.spend.html").text
    assert "<script>bad</script>" in text
    assert "NULL" in text
    assert "'</code></pre><script>' AS tag" in text


def test_a_page_shows_the_ttl_of_rows(tmp_path: Path):
    header = RIGHT["sql/silver/clicks.sql"].replace("*/", "ttl: 90 days\n*/")
    project = write_project(tmp_path, {"sql/silver/clicks.sql": header})
    found = Dictionary(compile_project(project))
    pages = {name: table_page(found, one, text="") for name, one in found.entries.items()}
    assert "90 days after" in pages["silver.clicks"]
    assert "Rows leave" not in pages["silver.orders"]


def test_twice_the_same(hostile: Path, tmp_path: Path):
    for name in ("one", "two"):
        build(hostile, tmp_path / name)

    def files(name: str) -> dict[str, bytes]:
        found = (file for file in (tmp_path / name).rglob("*") if file.is_file())
        return {str(file.relative_to(tmp_path / name)): file.read_bytes() for file in found}

    assert files("one") == files("two")


def test_a_dead_link_is_refused_and_the_earlier_site_stays(tmp_path: Path):
    project = write_project(tmp_path / "p", {"docs/guide.md": "# Guide\n"})
    build(project, tmp_path / "site")
    (project / "docs/guide.md").write_text("# Guide\n\n[there](nowhere.md)\n")

    with pytest.raises(SiteBrokenError) as refused:
        build(project, tmp_path / "site")
    assert "nowhere.md" in refused.value.problems[0]
    assert (tmp_path / "site/guide.html").exists()


def test_a_directory_of_something_else_is_left_alone(hostile: Path, tmp_path: Path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "letter.txt").write_text("dear")

    with pytest.raises(SiteDirectoryTakenError):
        build(hostile, other)
    assert (other / "letter.txt").exists()


def test_pages_of_ones_own_cannot_be_overwritten(tmp_path: Path):
    project = write_project(tmp_path, {"docs/dictionary/gold.spend.md": "# Mine\n"})

    with pytest.raises(PageTakenError):
        build(project, tmp_path / "site")


def test_the_readme_is_the_home_and_its_links_lead_to_pages(shop: Path):
    home = Page(shop / "index.html")
    assert "Quick start" in home.text
    targets = {address for _, address in home.links()}
    assert {"tutorial.html", "silver.html", "dictionary/index.html"} <= targets
    assert not [one for one in targets if one.startswith("docs/")]


def test_pages_are_sorted_by_purpose(shop: Path):
    text = " ".join(Page(shop / "index.html").text.split())
    places = [text.index(name) for name in ("Start", "How to", "Reference", "Explanation")]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("headings", "words"),
    [("- a\n- b\n", "docs/navigation.yml"), ("How to: [gone.md]\n", "gone.md")],
    ids=["no mapping", "a page that does not exist"],
)
def test_a_broken_navigation_is_named(tmp_path: Path, headings: str, words: str):
    project = write_project(tmp_path, RIGHT)
    (project / "docs").mkdir()
    (project / "docs/navigation.yml").write_text(headings)
    with pytest.raises(SiteBrokenError, match=words):
        build_site(compile_project(project), tmp_path / "site", project_dir=project)


def test_a_project_without_a_readme_has_a_home_too(tmp_path: Path):
    project = write_project(tmp_path, RIGHT)
    build_site(compile_project(project), tmp_path / "site", project_dir=project)
    addresses = {address for _, address in Page(tmp_path / "site/index.html").links()}
    assert "dictionary/index.html" in addresses
