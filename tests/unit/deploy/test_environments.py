"""What an environment holds, what of it stands, what is refused and what is hidden."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spark_jobs.cli.main import app
from spark_jobs.deploy.environment_errors import (
    EnvironmentBusyError,
    EnvironmentInputError,
    EnvironmentNameError,
    EnvironmentUnknownError,
    PromotionRefusedError,
)
from spark_jobs.deploy.environments import checked_name, hidden_columns, moved, reading
from spark_jobs.deploy.errors import NotConfirmedError, NothingAppliedError
from spark_jobs.errors import ProblemsError
from spark_jobs.gold.environment import copies
from spark_jobs.gold.environment.copies import delete_copies, delete_expired_copies
from spark_jobs.gold.environment.surroundings import known_environment, only_writer
from spark_jobs.graph.manifest import Manifest
from spark_jobs.rollout.environments import (
    PlannedEnvironment,
    apply_environment,
    drop_environment,
    plan_environment,
    surroundings_of,
)
from spark_jobs.rollout.planning import make_plan
from spark_jobs.rollout.promotion_plan import plan_promotion
from spark_jobs.settings import Settings, load_settings
from spark_jobs.state.environments import Environment, EnvironmentStatus, ViewState
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import utc_now
from spark_jobs.storage.errors import FilesRemainError
from spark_jobs.storage.lake import Lake
from tests import deployments
from tests.compiling import compiled_files
from tests.golden.declaration_cases import RIGHT, write_project

HEADER = RIGHT["sql/gold/spend.sql"].partition("*/")[0] + "*/\n"
PLAIN = HEADER + "SELECT o.order_id, o.amount\nFROM silver.orders AS o"
READER = HEADER + "SELECT p.order_id, p.amount + 1 AS more FROM gold.plain AS p"
OTHER = HEADER + "SELECT p.order_id FROM gold.plain AS p"
FILES = {
    "sql/gold/plain.sql": PLAIN,
    "sql/gold/reader.sql": READER,
    "sql/gold/other.sql": OTHER,
}
CHANGED = PLAIN.replace("o.amount", "-o.amount AS amount")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "shop").mkdir()
    return load_settings(write_project(tmp_path / "shop", FILES), state_dir=tmp_path / "state")


@pytest.fixture
def store(settings: Settings) -> Iterator[ControlStore]:
    with ControlStore.open(settings.control_url) as opened:
        yield opened


def put_in_force(settings: Settings, store: ControlStore) -> Manifest:
    newest = store.newest_deployment()
    number = newest.number + 1 if newest else 1
    manifest = compiled_files(settings.project_dir)
    manifest = manifest.model_copy(update={"deployment": f"d{number}"})
    deployments.put_in_force(store, manifest.model_dump_json(), number=number, name=f"d{number}")
    manifest.write(settings.manifest_file)
    return manifest


def planned(
    settings: Settings, store: ControlStore, files: dict[str, str | None]
) -> PlannedEnvironment:
    for file, text in files.items():
        path = settings.project_dir / file
        if text is None:
            path.unlink()
        else:
            path.write_text(text)
    project = compiled_files(settings.project_dir)
    return plan_environment(settings, store, project, "ana", who="tests")


def built(environment: Environment) -> Environment:
    """As it is once everything was built."""
    for view, one in environment.views.items():
        reads = {"plain": {}, "reader": {"gold.plain": {"id": "plain", "version": 3}}}
        environment = environment.with_view(
            view,
            replace(
                one,
                state=ViewState.BUILT,
                table={"id": view, "version": 3},
                vector=reads.get(view, {}),
                clock="2026-01-01T00:00:00+00:00",
            ),
        )
    return replace(environment, status=EnvironmentStatus.BUILT)


@pytest.mark.parametrize("name", ["ana", "a", "ana_2", "a" * 31])
def test_names_that_are_allowed(name: str) -> None:
    assert checked_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "Ana", "2a", "_a", "a-b", "a.b", "../a", "a/b", "a b", "a" * 32, "a\n", "ä"]
)
def test_names_that_could_be_anything_else_are_refused(name: str) -> None:
    with pytest.raises(EnvironmentNameError):
        checked_name(name)


def test_only_changed_views_and_what_reads_them_are_built(
    settings: Settings, store: ControlStore
) -> None:
    before = put_in_force(settings, store)
    found = planned(settings, store, {"sql/gold/plain.sql": CHANGED})

    views = found.environment.views
    assert {view: one.why for view, one in views.items()} == {
        "plain": "changed",
        "reader": "reads gold.plain",
    }
    assert list(views) == list(found.builds) == ["plain", "reader"]
    assert views["plain"].base == before.gold["plain"].fingerprint != views["plain"].fingerprint
    assert views["reader"].base == views["reader"].fingerprint
    assert found.manifest.gold["other"] == before.gold["other"]
    assert store.environments() == []


def test_views_that_stand_are_not_built_again(settings: Settings, store: ControlStore) -> None:
    put_in_force(settings, store)
    first = planned(settings, store, {"sql/gold/plain.sql": CHANGED})
    store.save_environment(built(first.environment))

    again = planned(settings, store, {})
    assert again.empty
    assert again.environment.views == built(first.environment).views
    changed = planned(settings, store, {"sql/gold/reader.sql": READER.replace("+ 1", "+ 2")})
    assert changed.builds == ("reader",)
    # What is above is built again, so what reads it is.
    twice = CHANGED.replace("-o.amount", "-2 * o.amount")
    assert planned(settings, store, {"sql/gold/plain.sql": twice}).builds == ("plain", "reader")


def test_a_changed_suite_is_asked_again(settings: Settings, store: ControlStore) -> None:
    put_in_force(settings, store)
    first = planned(settings, store, {"sql/gold/plain.sql": CHANGED})
    store.save_environment(built(first.environment))
    suite = RIGHT["expectations/gold/spend.json"].replace("spend", "plain")
    suite = suite.replace("user_id", "order_id")

    found = planned(settings, store, {"expectations/gold/plain.json": suite})
    assert found.builds == ("plain", "reader")


def test_a_reverted_view_is_removed_from_the_environment(
    settings: Settings, store: ControlStore
) -> None:
    put_in_force(settings, store)
    first = planned(settings, store, {"sql/gold/plain.sql": CHANGED})
    store.save_environment(built(first.environment))

    found = planned(settings, store, {"sql/gold/plain.sql": PLAIN})
    assert (found.gone, found.builds, found.empty) == (("plain", "reader"), (), False)


def test_a_killed_removal_leaves_no_table_without_a_record(
    settings: Settings, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_in_force(settings, store)
    first = planned(settings, store, {"sql/gold/plain.sql": CHANGED})
    store.save_environment(built(first.environment))
    found = planned(settings, store, {"sql/gold/plain.sql": PLAIN})
    table = Path(Lake(settings.lake).environment("ana", "plain"))
    table.mkdir(parents=True)

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            apply_environment(
                surroundings_of(settings, store, found), found, watch=lambda _: nullcontext()
            )
    kept = known_environment(store, "ana")
    # Forgetting a person finds it, and no build takes it for built.
    assert reading(kept, {"silver.orders"}) == {"plain", "reader"}
    assert {one.state for one in kept.views.values()} == {ViewState.DELETED}
    again = planned(settings, store, {})
    apply_environment(surroundings_of(settings, store, again), again, watch=lambda _: nullcontext())
    assert not table.exists()
    assert known_environment(store, "ana").views == {}


def test_an_environment_whose_files_stay_is_still_known(
    settings: Settings, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_in_force(settings, store)
    first = planned(settings, store, {"sql/gold/plain.sql": CHANGED})
    store.save_environment(built(first.environment))
    table = Path(Lake(settings.lake).environment("ana", "plain"))
    table.mkdir(parents=True)
    (table / "part-0.parquet").touch()

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "part-0.parquet")

    with monkeypatch.context() as patch:
        patch.setattr("os.unlink", refused)
        with pytest.raises(FilesRemainError):
            delete_copies(settings, store, {"silver.orders"}, why="forgotten")
        # The maintenance of expired rows, and its next run.
        monkeypatch.setattr(copies, "_expired_at", lambda _: utc_now())
        for _ in range(2):
            with pytest.raises(FilesRemainError):
                delete_expired_copies(settings, store, {"silver.orders": "any"})
        with pytest.raises(FilesRemainError):
            drop_environment(settings, store, known_environment(store, "ana"))
    assert known_environment(store, "ana").status is EnvironmentStatus.DROPPING
    # Forgetting finds it again.
    assert delete_copies(settings, store, {"silver.orders"}, why="forgotten")
    assert not table.exists()
    assert delete_expired_copies(settings, store, {"silver.orders": "any"}) == []


def test_nothing_stands_of_an_environment_that_was_being_dropped(
    settings: Settings, store: ControlStore
) -> None:
    put_in_force(settings, store)
    first = planned(settings, store, {"sql/gold/plain.sql": CHANGED})
    dropping = replace(built(first.environment), status=EnvironmentStatus.DROPPING)
    store.save_environment(dropping)

    assert planned(settings, store, {}).builds == ("plain", "reader")
    # Its files are removed first, because some of a table's may be gone.
    table = Path(Lake(settings.lake).environment("ana", "plain"))
    table.mkdir(parents=True)
    found = planned(settings, store, {"sql/gold/plain.sql": PLAIN})
    apply_environment(surroundings_of(settings, store, found), found, watch=lambda _: nullcontext())
    assert not table.exists()


def test_a_removed_view_that_still_runs_is_built_where_it_reads_a_change(
    settings: Settings, store: ControlStore
) -> None:
    put_in_force(settings, store)
    found = planned(settings, store, {"sql/gold/plain.sql": CHANGED, "sql/gold/reader.sql": None})
    assert found.builds == ("plain", "reader")


def test_inputs_that_do_not_run_yet_are_refused(settings: Settings, store: ControlStore) -> None:
    put_in_force(settings, store)
    silver = RIGHT["sql/silver/clicks.sql"].replace("clicks\n", "clicks\n", 1)
    visits = HEADER + "SELECT v.page FROM silver.visits AS v"
    more = RIGHT["sql/silver/orders.sql"].replace("amount,", "amount, amount * 2 AS twice,")
    found = planned(
        settings,
        store,
        {
            "sql/silver/visits.sql": silver,
            "sql/gold/visits.sql": visits,
            "sql/silver/orders.sql": more,
            "sql/gold/plain.sql": PLAIN.replace("o.amount", "o.twice AS amount"),
        },
    )
    problems = {(one.view, one.table) for one in found.problems}
    assert all(isinstance(one, EnvironmentInputError) for one in found.problems)
    assert problems == {("visits", "silver.visits"), ("plain", "silver.orders")}
    context = surroundings_of(settings, store, found)
    with pytest.raises(ProblemsError):
        apply_environment(context, found, watch=lambda _: None)
    assert store.environments() == []


def test_nothing_differs_from_nothing(settings: Settings, store: ControlStore) -> None:
    with pytest.raises(NothingAppliedError):
        planned(settings, store, {})


def test_which_views_hold_data_of_a_table(settings: Settings, store: ControlStore) -> None:
    put_in_force(settings, store)
    environment = planned(settings, store, {"sql/gold/plain.sql": CHANGED}).environment

    assert reading(environment, {"silver.orders"}) == {"plain", "reader"}
    assert reading(environment, {"gold.plain"}) == {"plain", "reader"}
    assert reading(environment, {"gold.reader"}) == {"reader"}
    assert reading(environment, {"silver.clicks"}) == frozenset()
    # What another release wrote may hold anything.
    strange = replace(environment, manifest="{}")
    assert reading(strange, {"silver.clicks"}) == {"plain", "reader"}


def test_production_moved_on(settings: Settings, store: ControlStore) -> None:
    put_in_force(settings, store)
    environment = planned(settings, store, {"sql/gold/plain.sql": CHANGED}).environment
    assert moved(put_in_force(settings, store), environment) == ()
    (settings.project_dir / "sql/gold/plain.sql").write_text(PLAIN.replace("amount", "user_id"))
    (settings.project_dir / "sql/gold/reader.sql").unlink()
    assert moved(put_in_force(settings, store), environment) == ("plain", "reader")


def test_nothing_is_promoted_into_what_cannot_be_read(
    settings: Settings, store: ControlStore
) -> None:
    """It would lose what this release cannot read of the manifest in force."""
    manifest = put_in_force(settings, store)
    environment = built(planned(settings, store, {"sql/gold/plain.sql": CHANGED}).environment)
    assert plan_promotion(store, environment).left
    text = json.dumps({**json.loads(manifest.model_dump_json()), "of_another_release": 1})
    deployments.put_in_force(store, text, number=2, name="d2")
    with pytest.raises(PromotionRefusedError, match="another release"):
        plan_promotion(store, environment)
    # The remedy is never nothing to do.
    plan = make_plan(settings, store, manifest).plan
    assert [str(one) for one in plan.steps] == ["manifest"]


def marked(settings: Settings, file: str, text: str) -> None:
    path = settings.project_dir / file
    path.write_text(path.read_text().replace("*/", f"{text}\n*/", 1))


def test_a_contract_is_broken_by_the_promotion(
    settings: Settings, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by the environment, which is the place to try such a change."""
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(settings.state_dir))
    promised = {
        "sql/gold/plain.sql": PLAIN.replace("*/", "contract: strict\n*/", 1),
        "sql/gold/reader.sql": READER.replace("p.amount", "p.order_id"),
    }
    for file, text in promised.items():
        (settings.project_dir / file).write_text(text)
    put_in_force(settings, store)
    without = promised["sql/gold/plain.sql"].replace(", o.amount", "")
    found = planned(settings, store, {"sql/gold/plain.sql": without})
    assert found.problems == ()
    environment = built(found.environment)

    with pytest.raises(ProblemsError) as refused:
        plan_promotion(store, environment)
    assert [one.condition for one in refused.value.problems] == ["CONTRACT_BROKEN"]
    planning = plan_promotion(store, environment, contract_breaks=["gold.plain"])
    assert planning.left == ("plain",)

    for verb in ("plan", "apply"):
        words = ["--project", str(settings.project_dir), verb, "--env", "ana"]
        done = CliRunner().invoke(app, [*words, "--break-contract", "gold.plain"])
        assert done.exit_code == 2
        assert "env promote ana" in done.output


def test_marks_of_production_and_of_the_new_definition_count(
    settings: Settings, store: ControlStore
) -> None:
    marked(settings, "sql/gold/plain.sql", "pii: [order_id]")
    before = put_in_force(settings, store)
    found = planned(
        settings, store, {"sql/gold/plain.sql": CHANGED.replace("*/", "pii: [amount]\n*/")}
    )

    hidden = hidden_columns(before, found.environment)
    assert hidden["gold.plain"] == {"order_id", "amount"}
    # Production's mark goes on to what is computed from the column.
    assert hidden["gold.reader"] == {"order_id", "more"}


def test_columns_stay_hidden_when_a_file_drops_the_pii_mark(
    settings: Settings, store: ControlStore
) -> None:
    silver = (settings.project_dir / "sql/silver/orders.sql").read_text()
    marked(settings, "sql/silver/orders.sql", "pii: [amount]")
    before = put_in_force(settings, store)
    (settings.project_dir / "sql/silver/orders.sql").write_text(silver)
    found = planned(
        settings,
        store,
        {
            "sql/gold/plain.sql": CHANGED.replace("AS amount", "AS paid"),
            "sql/gold/reader.sql": READER.replace("p.amount", "p.paid"),
        },
    )

    hidden = hidden_columns(before, found.environment)
    assert hidden["gold.plain"] == {"paid"}
    assert hidden["gold.reader"] == {"more"}


def test_one_command_at_a_time(settings: Settings, store: ControlStore) -> None:
    with pytest.raises(EnvironmentUnknownError):
        known_environment(store, "ana")
    with (
        only_writer(settings, "ana"),
        only_writer(settings, "other"),
        pytest.raises(EnvironmentBusyError),
        only_writer(settings, "ana"),
    ):
        pass


def test_the_commands(settings: Settings, store: ControlStore, monkeypatch) -> None:
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(settings.state_dir))
    project = str(settings.project_dir)

    def call(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, ["--project", project, *words])
        if isinstance(done.exception, Exception) and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, done.stdout

    put_in_force(settings, store)
    assert call("plan", "--env", "ana")[0] == 0
    assert "no environment" in call("env", "list")[1]
    (settings.project_dir / "sql/gold/plain.sql").write_text(CHANGED)
    code, text = call("plan", "--env", "ana", "--json")
    found = json.loads(text)
    assert (code, [one["view"] for one in found["views"]]) == (3, ["plain", "reader"])
    assert "2 views to build" in call("plan", "--env", "ana")[1]
    with pytest.raises(NotConfirmedError):
        call("apply", "--env", "ana", "--no-spark")
    with pytest.raises(EnvironmentNameError):
        call("apply", "--env", "../ana")

    environment = plan_environment(
        settings, store, compiled_files(settings.project_dir), "ana", who="tests"
    ).environment
    store.save_environment(built(environment))
    assert "gold.reader" in call("env", "list")[1]
    (listed,) = json.loads(call("env", "list", "--json")[1])
    assert (listed["name"], listed["status"]) == ("ana", "built")
    with pytest.raises(NotConfirmedError):
        call("env", "drop", "ana")
    assert call("env", "drop", "ana", "--yes")[0] == 0
    with pytest.raises(EnvironmentUnknownError):
        call("env", "drop", "ana", "--yes")
