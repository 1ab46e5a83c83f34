"""An apply over a control database: its steps, kills between them, and who else applies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from spark_jobs.cli.apply import show
from spark_jobs.deploy.errors import (
    ApplyOvertakenError,
    ApplyRunningError,
    PlanOutdatedError,
    StepFailedError,
)
from spark_jobs.deploy.steps import Step, StepKind
from spark_jobs.errors import ProblemsError
from spark_jobs.graph.manifest import Manifest
from spark_jobs.rollout.apply import FAILPOINTS, Applied, apply, kept_after, only_apply, settle
from spark_jobs.rollout.planning import make_plan
from spark_jobs.rollout.steps import Carrier
from spark_jobs.settings import Settings, load_settings
from spark_jobs.state.deployments import DeploymentStatus
from spark_jobs.state.errors import DeploymentOvertakenError
from spark_jobs.state.failpoints import EXIT_CODE, VARIABLE
from spark_jobs.state.store import ControlStore
from tests.compiling import compiled_files
from tests.deployments import put_in_force
from tests.forking import forking
from tests.golden.declaration_cases import RIGHT, write_project

EVENTS = """\
format: json
topic: refunds
event_id: id
event_time: at
columns: {id: STRING, at: TIMESTAMP}
"""
TELLERS = RIGHT["sources/orders.yml"].replace("orders", "tellers")
MORE = {
    "sources/refunds.yml": EVENTS,
    "sql/silver/refunds.sql": "/* silver\ndescription: R.\n*/\nSELECT id, at FROM bronze.refunds\n",
    "sql/gold/later.sql": RIGHT["sql/gold/spend.sql"].replace("SUM(", "MAX("),
}
# One of each step: a table with rows comes, a topic goes.
RATES = """\
format: csv
path: seeds/rates.csv
keys: country
columns: {country: STRING, rate: INT}
"""
EACH = {
    "sources/tellers.yml": TELLERS,
    "sql/silver/tellers.sql": RIGHT["sql/silver/orders.sql"].replace("orders", "tellers"),
    "sql/gold/later.sql": MORE["sql/gold/later.sql"],
    "sources/rates.yml": RATES,
    "seeds/rates.csv": "country,rate\nde,19\n",
}
GONE = ("sources/clicks.yml", "sql/silver/clicks.sql")
EVERY = [
    "topic shop.public.tellers",
    "connector shop.public.orders, shop.public.tellers",
    "manifest",
    "stream bronze.tellers",
    "stream silver.tellers",
    "stop bronze.clicks",
    "stop silver.clicks",
    "snapshot tellers",
    "take up silver.tellers",
    "seed rates",
    "build gold.later",
]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    folder = tmp_path / "shop"
    folder.mkdir()
    return load_settings(write_project(folder, {}), state_dir=tmp_path / "state")


@pytest.fixture
def store(settings: Settings) -> Iterator[ControlStore]:
    with ControlStore.open(settings.control_url) as opened:
        yield opened


class Worker:
    """Carries out what touches no service as an apply does, and notes the rest."""

    def __init__(self, settings: Settings, store: ControlStore, project: Manifest) -> None:
        self.carrier = Carrier(settings, store, project)
        self.log = settings.state / "carried"
        self.failing: set[str] = set()

    @property
    def carried(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    def carry(self, step: Step, deployment, note) -> str | None:
        if str(step) in self.failing:
            raise StepFailedError(str(step), "as the test wants")
        if step.kind is StepKind.MANIFEST:
            self.carrier.carry(step, deployment, note)
        with self.log.open("a") as file:
            file.write(f"{step}\n")
        return None


def run(settings: Settings, store: ControlStore, *, failing: set[str] = frozenset()) -> Applied:
    project = compiled_files(settings.project_dir)
    worker = Worker(settings, store, project)
    worker.failing = set(failing)
    planned = make_plan(settings, store, project)
    if planned.plan.empty:
        settle(store, planned.plan)
        return Applied("", {}, {})
    return apply(
        settings,
        store,
        planned,
        who="tests",
        carry=worker.carry,
        watch=lambda _: nullcontext(lambda _: None),
    )


def carried(settings: Settings) -> list[str]:
    path = settings.state / "carried"
    return path.read_text().splitlines() if path.exists() else []


def test_apply_does_the_plan_and_nothing_afterwards(
    settings: Settings, store: ControlStore
) -> None:
    first = run(settings, store)
    found = store.deployment_in_force()

    assert found is not None
    assert found.deployment_id == first.deployment
    assert (found.status, found.open_steps) == (DeploymentStatus.APPLIED, ())
    assert Manifest.read(settings.manifest_file).deployment == first.deployment
    project = compiled_files(settings.project_dir)
    assert make_plan(settings, store, project).plan.empty
    before = carried(settings)
    assert run(settings, store).deployment == ""
    assert carried(settings) == before


def test_only_what_differs_is_done(settings: Settings, store: ControlStore) -> None:
    run(settings, store)
    done = len(carried(settings))
    write_project(settings.project_dir, MORE)
    run(settings, store)

    assert carried(settings)[done:] == [
        "topic refunds",
        "manifest",
        "stream bronze.refunds",
        "stream silver.refunds",
        "build gold.later",
    ]


def test_a_failed_build_is_the_only_open_step(settings: Settings, store: ControlStore) -> None:
    ended = run(settings, store, failing={"build gold.spend"})
    found = store.newest_deployment()

    assert list(ended.failed) == ["build gold.spend"]
    assert found is not None
    assert (found.status, found.open_steps) == (DeploymentStatus.FAILED, ("build gold.spend",))
    again = run(settings, store)
    assert not again.failed
    assert carried(settings)[-1] == "build gold.spend"
    assert store.deployment(found.deployment_id).status is DeploymentStatus.SUPERSEDED


def test_steps_after_a_failed_stream_stay_open(settings: Settings, store: ControlStore) -> None:
    run(settings, store, failing={"stream bronze.orders"})
    done = len(carried(settings))
    # The files changed meanwhile: one view is gone, and with it its open step.
    for file in ("sql/gold/spend.sql", "expectations/gold/spend.json"):
        (settings.project_dir / file).unlink()
    run(settings, store)
    rest = carried(settings)[done:]

    assert "stream bronze.orders" in rest
    assert "stream silver.orders" in rest
    assert "build gold.spend" not in rest
    assert "stream bronze.clicks" not in rest
    assert set(store.deployment_in_force().kept) == {"gold.spend"}


def test_a_table_that_went_again_is_not_captured(settings: Settings, store: ControlStore) -> None:
    run(settings, store)
    files = ("sources/tellers.yml", "sql/silver/tellers.sql")
    write_project(settings.project_dir, {file: EACH[file] for file in files})
    # The connector captures the table now, and the manifest without it stays in force.
    run(settings, store, failing={"manifest"})
    assert "connector shop.public.orders, shop.public.tellers" in carried(settings)
    done = len(carried(settings))
    for file in files:
        (settings.project_dir / file).unlink()
    run(settings, store)
    assert carried(settings)[done:] == ["connector shop.public.orders", "manifest"]
    assert make_plan(settings, store, compiled_files(settings.project_dir)).plan.empty


def without_captured(settings: Settings) -> dict[Path, str]:
    """Remove the only captured source and what reads it; returns the files."""
    paths = [one for one in settings.project_dir.rglob("*") if one.is_file()]
    removed = {one: one.read_text() for one in paths if "clicks" not in one.name}
    for path in removed:
        path.unlink()
    return removed


def test_a_last_source_that_came_back_is_captured_again(
    settings: Settings, store: ControlStore
) -> None:
    run(settings, store)
    removed = without_captured(settings)
    # The connector is deleted, and the manifest with its source stays in force.
    run(settings, store, failing={"manifest"})
    done = carried(settings)
    assert done[-1] == "disconnect"
    for path, text in removed.items():
        path.write_text(text)
    run(settings, store)
    assert carried(settings)[len(done) :] == ["connector shop.public.orders", "manifest"]


def test_a_view_declared_again_is_no_longer_kept(settings: Settings, store: ControlStore) -> None:
    run(settings, store)
    for file in ("sql/gold/spend.sql", "expectations/gold/spend.json"):
        (settings.project_dir / file).unlink()
    run(settings, store)
    assert set(store.deployment_in_force().kept) == {"gold.spend"}
    write_project(settings.project_dir, {})
    run(settings, store)
    assert store.deployment_in_force().kept == {}


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("topic: clicks", "topic: other", "topic"),
        ("user_id: BIGINT, page", "user_id: INT, page", "the type of user_id"),
    ],
)
def test_a_table_declared_again_must_fit_what_is_stored(
    settings: Settings, store: ControlStore, old: str, new: str, what: str
) -> None:
    run(settings, store)
    for file in GONE:
        (settings.project_dir / file).unlink()
    run(settings, store)
    assert set(store.deployment_in_force().kept) == {"bronze.clicks", "silver.clicks"}
    text = RIGHT["sources/clicks.yml"]
    write_project(settings.project_dir, {"sources/clicks.yml": text.replace(old, new)})
    with pytest.raises(ProblemsError) as caught:
        run(settings, store)

    found = {(one.condition, getattr(one, "what", None)) for one in caught.value.problems}
    assert ("CHANGE_LOSES_DATA", what) in found
    # It may continue as it was, and as another table once the old one is dropped.
    write_project(settings.project_dir, {})
    run(settings, store)
    assert store.deployment_in_force().kept == {}


@pytest.mark.parametrize(("later", "fields"), [(120, {}), (1, {"of_another_release": 1})])
def test_a_table_declared_again_long_after_must_fit_too(
    settings: Settings, store: ControlStore, later: int, fields: dict[str, int]
) -> None:
    """After many deployments, and if another release wrote its last declaration."""
    run(settings, store)
    stored = json.loads(store.deployment_in_force().manifest)
    clicks = stored["sources"]["clicks"]
    clicks |= {**fields, "topic": "older"}
    clicks["columns"][0] |= fields
    for file in GONE:
        (settings.project_dir / file).unlink()
    run(settings, store)
    last = store.deployment_in_force()
    put_in_force(store, json.dumps(stored), number=last.number + 1, name="d-with-clicks")
    for number in range(last.number + 2, last.number + 2 + later):
        store.begin_deployment(replace(last, number=number, deployment_id=f"d-{number}"))
    write_project(settings.project_dir, {})

    problems = make_plan(settings, store, compiled_files(settings.project_dir)).plan.problems

    assert [(one.condition, one.what) for one in problems] == [("CHANGE_LOSES_DATA", "topic")]


@pytest.mark.parametrize("entry", ["with more fields", "unreadable"])
def test_tables_removed_with_an_upgrade_are_known(
    settings: Settings, store: ControlStore, entry: str
) -> None:
    """The manifest in force is of another release."""
    run(settings, store)
    last = store.deployment_in_force()
    stored = json.loads(last.manifest)
    stored["of_another_release"] = 1
    for kind in ("sources", "silver"):
        clicks = stored[kind]["clicks"]
        clicks["of_another_release"] = 1
        if entry == "unreadable":
            del clicks["file"]
    text, same = json.dumps(stored), last.settings
    put_in_force(store, text, number=last.number + 1, name="d-older", settings=same)
    for file in GONE:
        (settings.project_dir / file).unlink()
    plan = make_plan(settings, store, compiled_files(settings.project_dir)).plan
    gone = {"bronze.clicks", "silver.clicks"}

    stops = {f"stop {table}" for table in gone if entry != "unreadable"}
    assert {str(one) for one in plan.steps} - {"manifest"} == stops
    assert {one.name for one in plan.changes} == ({"clicks", "silver.clicks"} if stops else set())
    assert kept_after(plan).keys() == gone


def test_a_plan_with_problems_does_nothing(settings: Settings, store: ControlStore) -> None:
    run(settings, store)
    before = (carried(settings), store.number_in_force())
    other = RIGHT["sources/clicks.yml"].replace("topic: clicks", "topic: others")
    write_project(settings.project_dir, {**MORE, "sources/clicks.yml": other})
    with pytest.raises(ProblemsError) as caught:
        run(settings, store)

    assert {one.condition for one in caught.value.problems} == {"CHANGE_LOSES_DATA"}
    assert (carried(settings), store.number_in_force()) == before


def test_a_plan_whose_base_moved_is_refused(settings: Settings, store: ControlStore) -> None:
    run(settings, store)
    write_project(settings.project_dir, MORE)
    project = compiled_files(settings.project_dir)
    old = make_plan(settings, store, project)
    run(settings, store)
    before = carried(settings)
    with pytest.raises(PlanOutdatedError):
        apply(
            settings,
            store,
            old,
            who="tests",
            carry=Worker(settings, store, project).carry,
            watch=lambda _: nullcontext(lambda _: None),
        )
    assert carried(settings) == before


def test_of_two_machines_on_one_base_one_is_refused(
    settings: Settings, store: ControlStore
) -> None:
    run(settings, store)
    found = store.newest_deployment()
    assert found is not None
    with pytest.raises(DeploymentOvertakenError):
        store.begin_deployment(type(found)(deployment_id="other", number=1, who="b", manifest="{}"))


def test_two_applies_at_once_are_refused(settings: Settings, store: ControlStore) -> None:
    twice = only_apply(settings, store)
    with only_apply(settings, store), pytest.raises(ApplyRunningError), twice:
        pass
    with only_apply(settings, store):
        pass


def test_two_machines_do_not_apply_at_once_on_an_object_store(
    settings: Settings, store: ControlStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    words = {"lake_root": "s3a://bucket/lake", "control_db": settings.control_url}
    here, there = (
        load_settings(settings.project_dir, state_dir=tmp_path / name, **words)
        for name in ("here", "there")
    )
    with only_apply(here, store):
        monkeypatch.setattr("socket.gethostname", lambda: "there")
        with pytest.raises(ApplyRunningError) as caught, only_apply(there, store):
            pass
        assert str(tmp_path / "here") in str(caught.value)
    with only_apply(there, store):
        pass


def test_an_apply_that_another_continued_stops(settings: Settings, store: ControlStore) -> None:
    project = compiled_files(settings.project_dir)
    carried_here: list[str] = []

    def carry(step: Step, *_: object) -> None:
        carried_here.append(str(step))
        run(settings, store)

    with pytest.raises(ApplyOvertakenError):
        apply(
            settings,
            store,
            make_plan(settings, store, project),
            who="tests",
            carry=carry,
            watch=lambda _: nullcontext(lambda _: None),
        )
    assert len(carried_here) == 1
    assert store.newest_deployment().status is DeploymentStatus.APPLIED


def killed(state: Path, folder: Path, point: str) -> None:
    import os

    os.environ[VARIABLE] = point
    settings = load_settings(folder, state_dir=state)
    with ControlStore.open(settings.control_url) as store:
        run(settings, store)


LAST = [one for one in FAILPOINTS if one.startswith("apply.disconnect.")]


@pytest.mark.parametrize("point", [one for one in FAILPOINTS if one not in LAST])
def test_a_killed_apply_continues(settings: Settings, point: str) -> None:
    with ControlStore.open(settings.control_url) as store:
        run(settings, store)
    done = len(carried(settings))
    write_project(settings.project_dir, EACH)
    for file in GONE:
        (settings.project_dir / file).unlink()
    words = (settings.state, settings.project_dir, point)
    process = forking(__name__).Process(target=killed, args=words)
    process.start()
    process.join(60)
    assert process.exitcode == EXIT_CODE
    with ControlStore.open(settings.control_url) as store:
        run(settings, store)
        found = store.newest_deployment()
        running = store.deployment_in_force()
        project = compiled_files(settings.project_dir)
        assert make_plan(settings, store, project).plan.empty
    assert running == found
    assert found.status is DeploymentStatus.APPLIED
    assert Manifest.read(settings.manifest_file).deployment == found.deployment_id
    assert set(found.kept) == {"bronze.clicks", "silver.clicks"}
    # Each at least once, in their order, and nothing else.
    rest = carried(settings)[done:]
    assert set(rest) == set(EVERY)
    assert sorted(EVERY, key=rest.index) == EVERY


@pytest.mark.parametrize("point", LAST)
def test_a_killed_apply_deletes_the_connector_again(settings: Settings, point: str) -> None:
    with ControlStore.open(settings.control_url) as store:
        run(settings, store)
        done = len(carried(settings))
        without_captured(settings)
        words = (settings.state, settings.project_dir, point)
        process = forking(__name__).Process(target=killed, args=words)
        process.start()
        process.join(60)
        assert process.exitcode == EXIT_CODE
        run(settings, store)
    rest = list(dict.fromkeys(carried(settings)[done:]))
    assert rest == ["disconnect", "manifest", "stop bronze.orders", "stop silver.orders"]


def test_the_messages_of_steps_have_an_old_and_a_new_key(
    settings: Settings, store: ControlStore, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = make_plan(settings, store, compiled_files(settings.project_dir)).plan
    show(plan, Applied("d1-tests", {"seed rates": "1 inserted"}, {}), as_json=True)
    answer = json.loads(capsys.readouterr().out)

    assert answer["messages"] == answer["told"] == {"seed rates": "1 inserted"}
