from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.errors import LakehouseError
from spark_jobs.graph.compile import compile_project
from spark_jobs.graph.manifest import Manifest
from spark_jobs.names import Layer
from spark_jobs.planning.errors import NothingSelectedError, SelectionSyntaxError
from spark_jobs.planning.selection import (
    Method,
    parse_selection,
    selected_tables,
    selected_views,
)
from tests.shipped import shipped_project

SOURCE = """
description: d
owner: {owner}
tags: {tags}
format: json
topic: {name}
event_id: id
columns: {{id: {{type: STRING, required: true}}, amount: BIGINT}}
"""
SILVER = """/* silver
description: d
owner: {owner}
tags: {tags}
*/
SELECT s.id, s.amount FROM bronze.{name} AS s
"""
GOLD = """/* gold
description: d
owner: {owner}
tags: {tags}
refresh: bulk
*/
SELECT COUNT(*) AS n FROM {table} AS t
"""


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    """orders and clicks; sums and counts read orders, totals reads sums, visits reads clicks."""
    folder: Path = tmp_path_factory.mktemp("project")
    files = {
        "sources/orders.yml": SOURCE.format(name="orders", owner="shop", tags="[money]"),
        "sources/clicks.yml": SOURCE.format(name="clicks", owner="web", tags="[]"),
        "sql/silver/orders.sql": SILVER.format(name="orders", owner="shop", tags="[]"),
        "sql/silver/clicks.sql": SILVER.format(name="clicks", owner="web", tags="[]"),
        "sql/gold/sums.sql": GOLD.format(table="silver.orders", owner="shop", tags="[finance]"),
        "sql/gold/counts.sql": GOLD.format(table="silver.orders", owner="web", tags="[finance]"),
        "sql/gold/totals.sql": GOLD.format(table="gold.sums", owner="shop", tags="[board]"),
        "sql/gold/visits.sql": GOLD.format(table="silver.clicks", owner="web", tags="[]"),
    }
    return compiled(folder, files)


def compiled(folder: Path, files: Mapping[str, str]) -> Manifest:
    """The manifest of a project with some files; the keys are paths below its folder."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return compile_project(folder)


def nothing() -> Collection[str]:
    return ()


def selected(manifest: Manifest, *texts: str) -> set[str]:
    return set(selected_views(manifest, texts, changed=lambda: {"visits", "totals"}))


@pytest.mark.parametrize(
    ("texts", "views"),
    [
        ("sums", "sums"),
        ("gold.sums", "sums"),
        ("sums visits", "sums visits"),
        ("*s", "sums counts totals visits"),
        ("t*", "totals"),
        ("tag:finance", "sums counts"),
        ("tag:fin*", "sums counts"),
        ("owner:web", "counts visits"),
        ("path:sql/gold", "sums counts totals visits"),
        ("path:sql/gold/t*.sql", "totals"),
        ("path:sql/silver/clicks.sql+", "visits"),
        ("+totals", "sums totals"),
        ("sums+", "sums totals"),
        ("+totals+", "sums totals"),
        ("silver.orders+", "sums counts totals"),
        ("bronze.clicks+", "visits"),
        ("tag:money+", "sums counts totals"),
        ("tag:finance,owner:web", "counts"),
        ("tag:finance+,tag:board", "totals"),
        ("tag:finance,owner:web sums+", "counts sums totals"),
        ("state:changed", "visits totals"),
        ("state:changed,owner:web", "visits"),
        ("+state:changed", "visits totals sums"),
        ("state:changed,tag:finance", ""),
    ],
)
def test_a_selection(manifest: Manifest, texts: str, views: str) -> None:
    assert selected(manifest, *texts.split()) == set(views.split())


def test_selected_views_are_in_dependency_order(manifest: Manifest) -> None:
    assert selected_views(manifest, ["totals", "sums"], changed=nothing) == ("sums", "totals")


def test_changed_views_are_computed_only_for_a_state_selector(manifest: Manifest) -> None:
    def never() -> Collection[str]:
        raise AssertionError

    assert selected_views(manifest, ["tag:finance"], changed=never)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("tag:finanse", 'Did you mean "finance"?'),
        ("owner:nobody", "Known are shop, web."),
        ("tag:finance,owner:wed", 'Did you mean "web"?'),
        ("silver.orders", 'Write "silver.orders+" for the gold views that read it.'),
        ("gold.summs+", 'Did you mean "gold.sums"?'),
        ("silver.ordersnone", 'Did you mean "silver.orders+"?'),
        ("silver.ordersnone+", 'Did you mean "silver.orders+"?'),
    ],
)
def test_an_empty_selection_suggests_known_names(manifest: Manifest, text: str, hint: str) -> None:
    with pytest.raises(NothingSelectedError) as raised:
        selected(manifest, text)
    assert raised.value.hint == hint


def test_a_tag_is_refused_where_nothing_has_one(tmp_path: Path) -> None:
    files = {
        "sources/orders.yml": SOURCE.format(name="orders", owner="shop", tags="[]"),
        "sql/silver/orders.sql": SILVER.format(name="orders", owner="shop", tags="[]"),
        "sql/gold/sums.sql": GOLD.format(table="silver.orders", owner="shop", tags="[]"),
    }
    manifest = compiled(tmp_path, files)
    with pytest.raises(NothingSelectedError) as raised:
        selected(manifest, "tag:finance")
    assert raised.value.hint == "No table of the project has a tag."


def test_silver_tables_are_selected_where_a_command_has_them(manifest: Manifest) -> None:
    layers = (Layer.GOLD, Layer.SILVER)

    def tables(text: str) -> set[str]:
        return selected_tables(manifest, [text], changed=nothing, layers=layers)

    assert tables("silver.clicks") == {"silver.clicks"}
    assert tables("+totals") == {"silver.orders", "gold.sums", "gold.totals"}
    with pytest.raises(NothingSelectedError) as raised:
        tables("bronze.clicks")
    assert raised.value.wanted == "gold view or silver table"


@pytest.mark.parametrize(
    "text", ["", "+", "tag:", "tagg:finance", "a,,b", "++a", "a++", "state:new", "'; DROP x; --"]
)
def test_a_malformed_selection_is_refused(manifest: Manifest, text: str) -> None:
    with pytest.raises(SelectionSyntaxError):
        selected(manifest, text)


@given(st.text(st.sampled_from("+,:*?ab. tagsowner_/"), max_size=30))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        terms = parse_selection(text)
    except LakehouseError:
        return
    assert terms
    assert all(term.method in Method and term.value for term in terms)


def test_every_tag_and_owner_of_the_shipped_project_selects_its_views() -> None:
    shipped = shipped_project()
    for view in shipped.gold.values():
        for text in (f"owner:{view.owner}", *(f"tag:{tag}" for tag in view.tags)):
            assert view.name in selected_views(shipped, [text], changed=nothing)
