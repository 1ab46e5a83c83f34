"""What a change of the project's files means, from files to the plan."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_jobs.deploy.change import Action, Category, Change, Cost, Kind, Work
from spark_jobs.deploy.plan import Plan, Running, plan_change
from spark_jobs.deploy.steps import Step
from spark_jobs.graph.compile import compile_project
from spark_jobs.graph.manifest import Manifest
from tests.compiling import compiled_files
from tests.golden.declaration_cases import RIGHT, write_project

HEADER = RIGHT["sql/gold/spend.sql"].partition("*/")[0] + "*/\n"
PLAIN = HEADER + "SELECT\n  o.order_id,\n  o.user_id,\n  o.amount\nFROM silver.orders AS o\n"
# Reads one column of the view above and filters by none.
READER = HEADER + "SELECT p.order_id, p.amount * 2 AS twice FROM gold.plain AS p\n"
DISTANT = HEADER + "SELECT p.order_id FROM gold.plain AS p\n"
LAST = HEADER + "SELECT SUM(r.twice) AS twice FROM gold.reader AS r\n"
SILVER = RIGHT["sql/silver/orders.sql"]
SOURCE = RIGHT["sources/orders.yml"]
EVENTS = """\
format: json
topic: refunds
event_id: id
event_time: at
columns: {id: STRING, at: TIMESTAMP}
"""
TODAY = date(2027, 1, 31)
BASE = {
    "sql/gold/plain.sql": PLAIN,
    "sql/gold/reader.sql": READER,
    "sql/gold/distant.sql": DISTANT,
    "sql/gold/last.sql": LAST,
}


@pytest.fixture
def compiled(tmp_path: Path) -> Any:
    made = 0

    def compile_files(
        files: dict[str, str | None], compiler: Callable[[Path], Manifest] = compile_project
    ) -> Manifest:
        nonlocal made
        made += 1
        # The folder's name is the project's.
        folder = tmp_path / str(made) / "shop"
        folder.mkdir(parents=True)
        return compiler(write_project(folder, {**BASE, **files}))

    return compile_files


@pytest.fixture
def planned(compiled: Any) -> Any:
    def plan(
        now: dict[str, str | None], was: dict[str, str | None] | None = None, **more: Any
    ) -> Plan:
        before = compiled(was or {}, compiled_files)
        running = Running(deployment="d-1", manifest=before, settings={"a": "1"})
        settings = more.pop("settings", {"a": "1"})
        return plan_change(
            running,
            compiled(now),
            settings,
            **{"costs": {}, "existing": {}, "today": TODAY, **more},
        )

    return plan


def only(plan: Plan) -> Change:
    assert len(plan.changes) == 1, [one.name for one in plan.changes]
    return plan.changes[0]


def test_the_same_files_are_nothing_to_do(planned: Any) -> None:
    plan = planned({})

    assert plan.empty
    assert plan.changes == plan.steps == plan.problems == plan.asks == ()


@pytest.mark.parametrize(
    "sql",
    [
        PLAIN.replace("SELECT", "select -- which\n"),
        PLAIN.replace("o.", "x.").replace("AS o", "AS x"),
    ],
)
def test_formatting_is_no_change(planned: Any, sql: str) -> None:
    assert planned({"sql/gold/plain.sql": sql}).empty


def test_an_added_column_is_non_breaking_and_leaves_readers_alone(planned: Any) -> None:
    sql = PLAIN.replace("o.amount\n", "o.amount,\n  o.created_at\n")
    plan = planned({"sql/gold/plain.sql": sql}, costs={"plain": Cost(rows=7, seconds=1.5)})
    change = only(plan)

    assert (change.name, change.category) == ("gold.plain", Category.NON_BREAKING)
    assert change.work == (Work.COMPUTE_COLUMNS,)
    assert change.reaches == ()
    assert change.untouched == ("gold.distant", "gold.reader")
    assert change.cost == Cost(rows=7, seconds=1.5)
    assert [str(one) for one in plan.steps] == ["manifest", "build gold.plain"]
    assert len(plan.asks) == 1


def test_a_changed_column_reaches_those_that_read_it(planned: Any) -> None:
    change = only(planned({"sql/gold/plain.sql": PLAIN.replace("o.amount", "-o.amount AS amount")}))

    assert change.category is Category.BREAKING
    assert change.details == ("columns changed: amount",)
    assert change.reaches == ("gold.reader", "gold.last")
    assert change.untouched == ("gold.distant",)


def test_other_rows_reach_every_reader(planned: Any) -> None:
    change = only(planned({"sql/gold/plain.sql": PLAIN + "WHERE o.amount > 0\n"}))

    assert change.category is Category.BREAKING
    assert change.work == (Work.RECOMPUTE,)
    assert change.reaches == ("gold.distant", "gold.reader", "gold.last")
    assert change.untouched == ()


def test_a_filter_of_a_reader_makes_all_of_it_follow(planned: Any) -> None:
    filtered = DISTANT.replace("\n", " ").rstrip() + " WHERE p.amount > 0\n"
    was = {"sql/gold/distant.sql": HEADER + filtered.partition("*/")[2]}
    sql = PLAIN.replace("o.amount", "-o.amount AS amount")
    change = only(planned({**was, "sql/gold/plain.sql": sql}, was))

    assert set(change.reaches) == {"gold.distant", "gold.reader", "gold.last"}


def test_a_removed_column_is_breaking(planned: Any) -> None:
    sql = PLAIN.replace("  o.user_id,\n", "")
    change = only(planned({"sql/gold/plain.sql": sql}))

    assert change.category is Category.BREAKING
    assert change.details == ("columns removed: user_id",)
    assert set(change.untouched) == {"gold.distant", "gold.reader"}


@pytest.mark.parametrize(
    ("old", "new", "work", "detail"),
    [
        ("owner: analytics", "owner: finance", Work.METADATA, "owner: analytics → finance"),
        ("every: 15 minutes", "every: 30 minutes", Work.RESCHEDULE, "every: 900 → 1800"),
        ("Spend per user.", "Spend.", Work.METADATA, "description changed"),
    ],
)
def test_words_compute_nothing(planned: Any, old: str, new: str, work: Work, detail: str) -> None:
    plan = planned({"sql/gold/plain.sql": PLAIN.replace(old, new)})
    change = only(plan)

    assert (change.category, change.work) == (Category.METADATA, (work,))
    assert change.details == (detail,)
    assert [str(one) for one in plan.steps] == ["manifest"]
    assert plan.asks == ()


def test_a_new_view_is_built_after_those_that_it_reads(planned: Any) -> None:
    new = {"sql/gold/reader.sql": None, "sql/gold/last.sql": None}
    plan = planned({}, new, costs={"reader": Cost(rows=3)})

    assert [(one.name, one.action, one.work) for one in plan.changes] == [
        ("gold.reader", Action.ADDED, (Work.FIRST_BUILD,)),
        ("gold.last", Action.ADDED, (Work.FIRST_BUILD,)),
    ]
    assert [str(one) for one in plan.steps] == ["manifest", "build gold.reader", "build gold.last"]


def test_a_removed_view_is_kept_and_asked_about(planned: Any) -> None:
    change = only(plan := planned({"sql/gold/last.sql": None}))

    assert (change.action, change.work) == (Action.REMOVED, (Work.KEEP,))
    assert plan.asks == ("gold.last: keep the table until tidemark drop",)
    assert [str(one) for one in plan.steps] == ["manifest"]


def test_a_new_source_gets_topic_and_streams(planned: Any) -> None:
    silver = "/* silver\ndescription: Refunds.\n*/\nSELECT id, at FROM bronze.refunds\n"
    plan = planned({"sources/refunds.yml": EVENTS, "sql/silver/refunds.sql": silver})

    assert [(one.kind, one.work) for one in plan.changes] == [
        (Kind.SOURCE, (Work.CREATE_TOPIC, Work.START_STREAM)),
        (Kind.SILVER, (Work.START_STREAM,)),
    ]
    assert [str(one) for one in plan.steps] == [
        "topic refunds",
        "manifest",
        "stream bronze.refunds",
        "stream silver.refunds",
    ]
    # Nothing of it is computed or ends.
    assert plan.asks == ()


TELLERS = SOURCE.replace("shop.public.orders", "shop.public.tellers").replace(
    "keys: [order_id]", "keys: [order_id]\ntable: public.tellers"
)
TELLERS_SILVER = SILVER.replace("bronze.orders", "bronze.tellers")


# Rows may also come between the plan and the moment when the connector captures the table.
@pytest.mark.parametrize("rows", [50, None, 0])
def test_a_table_with_rows_is_captured_and_read(planned: Any, rows: int | None) -> None:
    existing = {} if rows is None else {"tellers": rows}
    files = {"sources/tellers.yml": TELLERS, "sql/silver/tellers.sql": TELLERS_SILVER}
    plan = planned(files, existing=existing)

    assert Work.SNAPSHOT in plan.changes[0].work
    assert [str(one) for one in plan.steps] == [
        "topic shop.public.tellers",
        "connector public.tellers, shop.public.orders",
        "manifest",
        "stream bronze.tellers",
        "stream silver.tellers",
        "snapshot tellers",
        "take up silver.tellers",
    ]


def test_a_plan_names_the_command_that_an_external_connect_needs(planned: Any) -> None:
    files = {"sources/tellers.yml": TELLERS, "sql/silver/tellers.sql": TELLERS_SILVER}
    plan = planned(files, elsewhere=True)

    assert "tidemark source resnapshot --run" in plan.changes[0].details[-1]
    assert "snapshot tellers" in [str(one) for one in plan.steps]
    empty = planned(files, elsewhere=True, existing={"tellers": 0}).changes[0]
    assert "resnapshot" not in str(empty.details)


def test_a_connector_that_is_new_reads_by_itself(planned: Any) -> None:
    without = {
        "sources/orders.yml": None,
        "sql/silver/orders.sql": None,
        "sql/gold/spend.sql": None,
        "expectations/gold/spend.json": None,
        **dict.fromkeys(BASE),
    }
    plan = planned({**without, "sources/orders.yml": SOURCE}, without, elsewhere=True)

    assert plan.changes[0].work == (Work.CREATE_TOPIC, Work.CAPTURE, Work.START_STREAM)
    assert "resnapshot" not in str(plan.changes[0].details)


def test_a_connector_of_an_apply_that_did_not_end_reads_no_further_table_by_itself(
    compiled: Any,
) -> None:
    """Its first snapshot may be over: the rows of a table that is added now would be lost."""
    without = {
        "sources/orders.yml": None,
        "sql/silver/orders.sql": None,
        "sql/gold/spend.sql": None,
        "expectations/gold/spend.json": None,
        **dict.fromkeys(BASE),
    }
    running = Running(
        deployment="d-1",
        manifest=compiled(without),
        settings={},
        unfinished="d-2",
        open_steps=(Step.parse("connector shop.public.orders"), Step.parse("manifest")),
    )
    files = {**without, "sources/orders.yml": SOURCE, "sources/tellers.yml": TELLERS}
    plan = plan_change(running, compiled(files), {}, costs={}, existing={}, today=TODAY)

    assert [str(one) for one in plan.steps if str(one).startswith("snapshot")] == [
        "snapshot orders",
        "snapshot tellers",
    ]


def test_the_last_captured_table_takes_the_connector_with_it(planned: Any) -> None:
    """It would keep the log of its database, and read no rows of a table that comes later."""
    others = {
        "sources/orders.yml": None,
        "sql/silver/orders.sql": None,
        "sql/gold/spend.sql": None,
        "expectations/gold/spend.json": None,
        **dict.fromkeys(BASE),
    }
    plan = planned(others, {**others, "sources/orders.yml": SOURCE})

    assert [str(one) for one in plan.steps] == ["disconnect", "manifest", "stop bronze.orders"]
    assert plan.steps[0] == Step.parse("disconnect")
    assert "replication slot" in plan.steps[0].title
    assert plan.changes[0].details == ("the connector and its replication slot are deleted",)


def test_a_removed_source_stops_its_streams_only(planned: Any) -> None:
    gone = {"sources/clicks.yml": None, "sql/silver/clicks.sql": None}
    plan = planned(gone)

    assert [str(one) for one in plan.steps] == [
        "manifest",
        "stop bronze.clicks",
        "stop silver.clicks",
    ]
    assert len(plan.asks) == 2


def test_a_changed_silver_column_restarts_its_stream_and_lists_readers(planned: Any) -> None:
    sql = SILVER.replace("amount,", "amount * 100 AS amount,")
    was = {"sql/silver/orders.sql": SILVER.replace("amount,", "amount * 10 AS amount,")}
    plan = planned({"sql/silver/orders.sql": sql}, was)
    change = next(one for one in plan.changes if one.kind is Kind.SILVER)

    assert change.work == (Work.RESTART_STREAM,)
    assert change.category is Category.BREAKING
    assert "columns changed: amount" in change.details
    assert (
        "rows that are there stay until `tidemark rebuild silver.orders`; "
        "`tidemark diff silver.orders` compares them"
    ) in change.details
    assert set(change.untouched) == {"gold.distant"} - set(change.reaches) | set(change.untouched)
    assert {"gold.spend", "gold.plain", "gold.reader", "gold.last"} <= set(change.reaches)
    assert "gold.distant" not in change.reaches
    assert "stream silver.orders" in map(str, plan.steps)
    assert "stream bronze.orders" not in map(str, plan.steps)


def test_a_new_silver_column_is_non_breaking(planned: Any) -> None:
    sql = SILVER.replace("created_at FROM", "created_at, user_id AS buyer FROM")
    change = only(planned({"sql/silver/orders.sql": sql}))

    assert change.category is Category.NON_BREAKING
    assert change.reaches == ()


def test_the_words_of_a_silver_table_restart_nothing(planned: Any) -> None:
    plan = planned({"sql/silver/orders.sql": SILVER.replace("Orders.", "What was ordered.")})

    assert only(plan).category is Category.METADATA
    assert [str(one) for one in plan.steps] == ["manifest"]


def test_the_words_of_a_source_restart_nothing(planned: Any) -> None:
    plan = planned({"sources/orders.yml": "description: Orders.\n" + SOURCE})

    assert only(plan).category is Category.METADATA
    assert [str(one) for one in plan.steps] == ["manifest"]


def test_a_type_of_a_source_restarts_those_that_read_it(planned: Any) -> None:
    wider = SOURCE.replace("DECIMAL(12,2)", "DECIMAL(14,2)")
    plan = planned({"sources/orders.yml": wider})
    steps = [str(one) for one in plan.steps]

    assert "stream silver.orders" in steps
    assert not [one for one in steps if "bronze" in one]
    assert plan.problems == ()
    assert {one.kind for one in plan.changes} >= {Kind.SOURCE, Kind.SILVER, Kind.GOLD}


@pytest.mark.parametrize(
    ("file", "old", "new", "what"),
    [
        ("sources/orders.yml", "topic: shop.public.orders", "topic: shop.public.other", "topic"),
        ("sources/orders.yml", "keys: [order_id]", "keys: [order_id, user_id]", "keys"),
        ("sources/orders.yml", "DECIMAL(12,2)", "DECIMAL(10,2)", "the type of amount"),
        ("sql/silver/orders.sql", "Orders.", "Orders.\nstored_as_scd_type: 2", "apply"),
        (
            "sql/silver/orders.sql",
            "amount, created_at",
            "CAST(amount AS DECIMAL(10,2)) AS Amount, created_at",
            "the type of Amount",
        ),
        (
            "sql/silver/orders.sql",
            "amount, created_at",
            "amount AS Amount, created_at",
            "the spelling of column amount",
        ),
    ],
)
def test_a_change_that_loses_data_is_refused(
    planned: Any, file: str, old: str, new: str, what: str
) -> None:
    plan = planned({file: RIGHT[file].replace(old, new)})

    assert "CHANGE_LOSES_DATA" in {one.condition for one in plan.problems}
    assert what in {getattr(one, "what", None) for one in plan.problems}
    assert all(one.location is not None for one in plan.problems)


def test_the_table_of_a_topic_may_be_named_later(planned: Any) -> None:
    """It is the one that the topic is named after; commands that read the database ask for it."""
    named = SOURCE.replace("keys: [order_id]", "keys: [order_id]\ntable: public.orders")
    other = named.replace("public.orders", "public.others").replace(
        "shop.public.others", "shop.public.orders"
    )
    plain = {"sources/orders.yml": SOURCE}
    assert planned({"sources/orders.yml": named}, plain).problems == ()
    assert planned(plain, {"sources/orders.yml": named}).problems == ()
    [problem] = planned({"sources/orders.yml": other}, plain).problems
    assert (problem.condition, problem.what) == ("CHANGE_LOSES_DATA", "table")


CSV = """\
format: csv
path: seeds/clicks.csv
keys: id
columns: {id: STRING, at: TIMESTAMP}
"""


@pytest.mark.parametrize(
    ("was", "now", "stored"),
    [
        (
            "format: delta\nlocation: EXTERNAL\ncolumns: {id: STRING}\n",
            EVENTS,
            "table of another writer",
        ),
        (CSV, "format: delta\nlocation: EXTERNAL\ncolumns: {id: STRING}\n", "rows of its file"),
        (EVENTS, CSV, "records of its topic"),
    ],
    ids=["delta", "csv", "json"],
)
def test_a_source_of_another_kind_is_refused_in_its_own_words(
    planned: Any, tmp_path: Path, was: str, now: str, stored: str
) -> None:
    """An external table has no topic, and nothing in the lake is lost."""
    rest: dict[str, str | None] = {"sql/silver/clicks.sql": None}
    rest |= {"seeds/clicks.csv": "id,at\na,2026-01-01T00:00:00Z\n"}
    write_deltalake(tmp_path / "external", pa.table({"id": ["a"]}))
    sources = [one.replace("EXTERNAL", str(tmp_path / "external")) for one in (now, was)]
    (problem,) = planned(*({**rest, "sources/clicks.yml": one} for one in sources)).problems

    assert problem.condition == "SOURCE_KIND_CHANGED"
    assert stored in problem.detail
    assert ("tidemark drop" in problem.hint) == ("delta" not in was)
    assert "clicks_2" in problem.hint


def test_a_captured_table_declared_again_warns_of_deletions(compiled: Any) -> None:
    gone = {"sources/orders.yml": None, "sql/silver/orders.sql": None, "sql/gold/spend.sql": None}
    gone |= dict.fromkeys([*BASE, "expectations/gold/spend.json"])
    running = Running(
        deployment="d-2", manifest=compiled(gone), settings={}, kept={"bronze.orders": "2027-01-01"}
    )
    plan = plan_change(running, compiled({}), {}, costs={}, existing={}, today=TODAY)
    [source] = [one for one in plan.changes if one.kind is Kind.SOURCE]

    assert "rows deleted at the source since it was removed stay in silver" in source.details


def test_sinks_come_and_go(planned: Any) -> None:
    header = RIGHT["sql/gold/spend.sql"].replace(
        "owner: analytics",
        "owner: analytics\nsinks: [{kafka: {topic: gold.spend, keys: [user_id]}}]",
    )
    added = planned({"sql/gold/spend.sql": header})
    removed = planned({}, {"sql/gold/spend.sql": header})

    assert [(one.kind, one.work) for one in added.changes] == [(Kind.SINK, (Work.DELIVER,))]
    assert [(one.kind, one.work) for one in removed.changes] == [(Kind.SINK, (Work.STOP_STREAM,))]
    assert removed.asks


def test_a_sink_whose_columns_change_waits_for_a_rebuild(planned: Any) -> None:
    file = "sql/gold/spend.sql"
    view = RIGHT[file].replace(
        "owner: analytics",
        "owner: analytics\nsinks: [{kafka: {topic: gold.spend, keys: [user_id]}}]",
    )
    more = view.replace("AS spend", "AS spend, COUNT(*) AS orders")
    for now, was in ((more, view), (view, more)):
        plan = planned({file: now}, {file: was})
        [sink] = [one for one in plan.changes if one.kind is Kind.SINK]
        assert any(f"tidemark sink rebuild {sink.name}" in detail for detail in sink.details)


def test_a_suite_computes_nothing(planned: Any) -> None:
    suite = RIGHT["expectations/gold/spend.json"].replace(
        '"kwargs": {"column": "user_id"}', '"kwargs": {"column": "spend"}'
    )
    change = only(planned({"expectations/gold/spend.json": suite}))

    assert (change.kind, change.action) == (Kind.SUITE, Action.CHANGED)
    assert only(planned({"expectations/gold/spend.json": None})).action is Action.REMOVED


def test_a_file_is_read_anew_in_another_format_and_by_other_keys(planned: Any) -> None:
    source = "path: seeds/rates.{0}\nformat: {0}\nkeys: [{1}]\ncolumns: {{a: STRING, b: STRING}}\n"
    csv, lines = {"seeds/rates.csv": "a,b\n1,2\n"}, {"seeds/rates.jsonl": '{"a": "1", "b": "2"}\n'}
    was = {"sources/rates.yml": source.format("csv", "a"), **csv}
    now = {"sources/rates.yml": source.format("jsonl", "b"), **lines}
    plan = planned(now, was)

    assert plan.problems == ()
    assert only(plan).work == (Work.LOAD_FILE,)
    assert "seed rates" in map(str, plan.steps)


def test_settings_are_named_with_both_values(planned: Any) -> None:
    plan = planned({}, settings={"a": "2", "b": "x"})

    assert [(one.name, one.details) for one in plan.changes] == [
        ("a", ("1 → 2",)),
        ("b", ("unset → x",)),
    ]
    # The parts are restarted by another command.
    assert plan.steps == ()


def test_open_steps_of_what_did_not_end_are_taken_over(compiled: Any) -> None:
    manifest = compiled({})
    carried = [Step.parse(text) for text in ("build gold.last", "build gold.gone")]
    running = Running(deployment="d-1", manifest=manifest, settings={}, open_steps=tuple(carried))
    plan = plan_change(running, manifest, {}, costs={}, existing={}, today=TODAY)

    assert not plan.empty
    assert [str(one) for one in plan.steps] == ["manifest", "build gold.last"]


def test_the_first_plan_adds_everything(compiled: Any) -> None:
    running = Running(deployment=None, manifest=Manifest(project="shop"), settings={})
    plan = plan_change(running, compiled({}), {"a": "1"}, costs={}, existing={}, today=TODAY)

    assert {one.action for one in plan.changes} == {Action.ADDED}
    # No setting was ever applied, so none differs.
    assert Kind.SETTING not in {one.kind for one in plan.changes}
    assert plan.as_dict()["base"] is None


PROMISED = PLAIN.replace("owner: analytics", "owner: analytics\ncontract: strict")
NEXT_VERSION = "contract: strict\ncontract_version: 2"


@pytest.mark.parametrize(
    ("was", "now", "breaks"),
    [
        (PROMISED, PROMISED.replace("  o.user_id,\n", ""), "user_id is removed"),
        (PROMISED, PROMISED.replace("o.user_id", "o.user_id AS buyer"), "user_id becomes buyer"),
        (
            PROMISED,
            PROMISED.replace("o.amount", "CAST(o.amount AS DOUBLE) AS amount"),
            "amount changes from decimal(12,2) to double",
        ),
        # A contract cannot end in the same step.
        (PROMISED, PLAIN.replace("  o.user_id,\n", ""), "user_id is removed"),
        (PROMISED, None, "the view is removed"),
        # What keeps it: other rows, other meanings, new columns, another order.
        (PROMISED, PROMISED + "WHERE o.amount > 0\n", None),
        (PROMISED, PROMISED.replace("o.amount", "-o.amount AS amount, o.created_at"), None),
        (PROMISED, PLAIN, None),
        (PLAIN, PROMISED.replace("  o.user_id,\n", ""), None),
        (
            PROMISED,
            PROMISED.replace("contract: strict", NEXT_VERSION).replace("  o.user_id,\n", ""),
            None,
        ),
    ],
)
def test_a_contract_is_kept_or_gets_a_new_version(
    planned: Any, was: str, now: str | None, breaks: str | None
) -> None:
    alone: dict[str, str | None] = {f"sql/gold/{one}.sql": None for one in ("reader", "distant")}
    alone["sql/gold/last.sql"] = None
    files = {"sql/gold/plain.sql": now, **alone}, {"sql/gold/plain.sql": was, **alone}
    problems = planned(*files).problems

    assert [one.condition for one in problems] == (["CONTRACT_BROKEN"] if breaks else [])
    assert [getattr(one, "breaks", None) for one in problems] == ([breaks] if breaks else [])
    assert planned(*files, contract_breaks=["gold.plain"]).problems == ()


DEPRECATED = PROMISED.replace("*/", "columns:\n  user_id: {deprecated: 2027-01-31}\n*/")


@pytest.mark.parametrize(
    ("now", "days", "breaks"),
    [
        (PLAIN.replace("  o.user_id,\n", ""), 0, None),
        (PLAIN.replace("  o.user_id,\n", ""), -1, "user_id is removed before 2027-01-31"),
        (PLAIN.replace("o.user_id", "o.user_id AS buyer"), 400, None),
        (
            PLAIN.replace("o.user_id", "o.user_id AS buyer"),
            -1,
            "user_id becomes buyer before 2027-01-31",
        ),
        # Only a removal is announced.
        (
            PLAIN.replace("o.user_id", "CAST(o.user_id AS STRING) AS user_id"),
            0,
            "user_id changes from bigint to string",
        ),
        (PLAIN.replace("  o.amount\n", "  o.created_at\n"), 0, "amount is removed"),
        (None, 0, "the view is removed"),
    ],
)
def test_a_deprecated_column_may_be_removed_from_its_date_on(
    planned: Any, now: str | None, days: int, breaks: str | None
) -> None:
    alone = dict.fromkeys(f"sql/gold/{one}.sql" for one in ("reader", "distant", "last"))
    files = {"sql/gold/plain.sql": now, **alone}, {"sql/gold/plain.sql": DEPRECATED, **alone}
    problems = planned(*files, today=TODAY + timedelta(days=days)).problems
    assert [getattr(one, "breaks", None) for one in problems] == ([breaks] if breaks else [])


def test_a_deprecation_is_metadata(planned: Any) -> None:
    deprecated = {"sql/gold/plain.sql": DEPRECATED}
    promised = {"sql/gold/plain.sql": PROMISED}
    change = only(planned(deprecated, promised))
    assert (change.category, change.work) == (Category.METADATA, (Work.METADATA,))
    assert change.details == ("user_id: deprecated, may be removed from 2027-01-31",)
    assert change.reaches == ()
    back = only(planned(promised, deprecated))
    assert back.details == ("user_id: not deprecated any more",)


def test_a_contract_notices_a_type_that_changes_far_above(planned: Any) -> None:
    wider = SOURCE.replace("DECIMAL(12,2)", "DECIMAL(14,2)")
    was = {"sql/gold/plain.sql": PROMISED}
    (problem,) = planned({**was, "sources/orders.yml": wider}, was).problems

    assert problem.breaks == "amount changes from decimal(12,2) to decimal(14,2)"
    assert "contract_version: 2" in problem.hint
    assert "--break-contract gold.plain" in problem.hint


def test_the_plan_names_what_becomes_of_a_contract(planned: Any) -> None:
    now = PROMISED.replace("contract: strict", NEXT_VERSION)
    change = only(planned({"sql/gold/plain.sql": now}))

    assert change.category is Category.METADATA
    assert change.details == ("contract: none → strict", "contract version: 1 → 2")


@pytest.mark.parametrize(
    ("key", "category", "work", "costs"),
    [
        (
            "partition_by: user_id",
            Category.NON_BREAKING,
            Work.RECOMPUTE,
            "the table is rewritten, and its readers process every row once",
        ),
        (
            "cluster_by: user_id",
            Category.METADATA,
            Work.METADATA,
            "tidemark maintain rearranges its files",
        ),
    ],
)
def test_another_layout_of_a_view_is_a_rewrite_or_metadata(
    planned: Any, key: str, category: Category, work: Work, costs: str
) -> None:
    laid_out = {"sql/gold/plain.sql": PLAIN.replace("owner:", f"{key}\nowner:")}
    words = key.replace("_by", " by")

    plan = planned(laid_out)
    change = only(plan)
    assert (change.category, change.work) == (category, (work,))
    assert change.details == (words.replace(":", ": none →"), costs)
    assert change.reaches == ()
    built = "build gold.plain" in map(str, plan.steps)
    assert built is (work is Work.RECOMPUTE)
    back = only(planned({}, laid_out))
    assert (back.category, back.work) == (category, (work,))
    assert back.details == (f"{words} → none", costs)


@pytest.mark.parametrize(
    ("key", "costs"),
    [
        ("partition_by", "the table is rewritten, and its readers process every row once"),
        ("cluster_by", "tidemark maintain rearranges its files"),
    ],
)
def test_another_layout_of_a_silver_table_restarts_its_stream(
    planned: Any, key: str, costs: str
) -> None:
    sql = SILVER.replace("description:", f"{key}: [user_id, order_id]\ndescription:")
    change = only(planned({"sql/silver/orders.sql": sql}))

    assert (change.category, change.work) == (Category.NON_BREAKING, (Work.RESTART_STREAM,))
    assert change.details == (f"{key.replace('_', ' ')}: none → user_id, order_id", costs)
    assert change.reaches == ()


def judged(policy: str, column: str = "user_id") -> dict[str, str | None]:
    """A suite for silver.orders, and what its failure does."""
    suite = RIGHT["expectations/gold/spend.json"].replace('"spend"', '"orders"')
    return {
        "expectations/silver/orders.json": suite.replace('"user_id"', f'"{column}"'),
        "sql/silver/orders.sql": SILVER.replace("*/", f"on_failure: {policy}\n*/"),
    }


def test_a_suite_of_a_silver_table_restarts_its_stream(planned: Any) -> None:
    plan = planned(judged("warn", "amount"), judged("warn"))
    change = only(plan)

    assert (change.kind, change.name, change.action) == (
        Kind.SUITE,
        "silver.orders",
        Action.CHANGED,
    )
    assert change.details == ("the next batch is checked by it",)
    assert [str(one) for one in plan.steps] == ["manifest", "stream silver.orders"]
    assert not plan.asks


def test_another_policy_restarts_the_stream(planned: Any) -> None:
    plan = planned(judged("quarantine"), judged("warn"))
    change = only(plan)

    assert (change.kind, change.work) == (Kind.SILVER, (Work.RESTART_STREAM,))
    assert change.details == ("on failure: warn → quarantine",)
    assert [str(one) for one in plan.steps] == ["manifest", "stream silver.orders"]


def test_words_of_a_silver_suite_restart_nothing(planned: Any) -> None:
    words = judged("warn")["expectations/silver/orders.json"] or ""
    noted = words.replace('"type"', '"meta": {"notes": "Who ordered."}, "type"')
    plan = planned({**judged("warn"), "expectations/silver/orders.json": noted}, judged("warn"))

    change = only(plan)

    assert (change.kind, change.work) == (Kind.SUITE, (Work.METADATA,))
    assert [str(one) for one in plan.steps] == ["manifest"]
