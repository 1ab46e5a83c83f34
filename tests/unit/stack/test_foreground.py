"""Which version of the project a container runs: the one that was applied, or its image's."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.errors import ProblemsError
from spark_jobs.graph.manifest import Manifest
from spark_jobs.orchestration.compiled import compiled_manifest
from spark_jobs.rollout.planning import running_now
from spark_jobs.settings import Settings, load_settings
from spark_jobs.stack import catalog, kafka_rights
from spark_jobs.stack.foreground import main
from spark_jobs.stack.stack import note_start, write_manifest
from spark_jobs.state.deployments import Deployment
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.compiled import compiled
from spark_jobs.storage.in_force import copy_in_force, current_manifest, follow_in_force
from tests.deployments import put_in_force

CAPTURED = """\
format: debezium
topic: shop.public.users
keys: [id]
columns: {id: BIGINT}
"""
SOURCE = "format: json\ntopic: {name}\nevent_id: id\ncolumns: {{id: STRING}}\n"


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project of an image, with one source."""
    folder = tmp_path / "image"
    (folder / "sources").mkdir(parents=True)
    add_source(folder, "orders")
    monkeypatch.setenv("TIDEMARK_PROJECT", str(folder))
    return folder


def add_source(image: Path, name: str) -> None:
    (image / f"sources/{name}.yml").write_text(SOURCE.format(name=name))


def start_pod(monkeypatch: pytest.MonkeyPatch, state: Path, *, control: Path | None) -> Manifest:
    """The manifest with which a pod starts."""
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(state))
    monkeypatch.delenv("TIDEMARK_CONTROL_DB", raising=False)
    if control:
        monkeypatch.setenv("TIDEMARK_CONTROL_DB", f"sqlite:///{control}")
    assert main(("run", "manifest")) == 0
    return Manifest.read(load_settings().manifest_file)


def apply_image(settings: Settings, number: int, *, readable: bool = True) -> Manifest:
    """Record a deployment of the image's project, as an apply does in some pod."""
    name = f"d{number}-tests"
    manifest = compiled(settings).model_copy(update={"deployment": name})
    with ControlStore.open(settings.control_url) as store:
        text = manifest.model_dump_json() if readable else '{"format": 2}'
        put_in_force(store, text, number=number, name=name)
    return manifest


def test_a_pod_starts_with_the_version_that_was_applied(image, tmp_path, monkeypatch) -> None:
    """Whether its state directory is new, as that of the streams, or older than the apply."""
    control, kept = tmp_path / "control.db", tmp_path / "scheduler"
    first = start_pod(monkeypatch, kept, control=control)
    assert (first.deployment, set(first.sources)) == (None, {"orders"})
    # Nothing was applied: the next image is what runs.
    add_source(image, "users")
    assert set(start_pod(monkeypatch, kept, control=control).sources) == {"orders", "users"}

    applied = apply_image(load_settings(), 1)
    applied.write(load_settings().manifest_file)
    add_source(image, "refunds")
    for state in (kept, tmp_path / "streams"):
        assert start_pod(monkeypatch, state, control=control) == applied
    # Another pod applied it, so this one has the copy of an older deployment.
    newer = apply_image(load_settings(), 2)
    assert set(newer.sources) == {"orders", "users", "refunds"}
    assert start_pod(monkeypatch, kept, control=control) == newer


def test_a_pod_compiles_its_image_where_no_applied_version_can_be_read(
    image, tmp_path, monkeypatch
) -> None:
    control, state = tmp_path / "control.db", tmp_path / "state"
    start_pod(monkeypatch, state, control=control)
    apply_image(load_settings(), 1, readable=False)
    add_source(image, "users")
    assert set(start_pod(monkeypatch, state, control=control).sources) == {"orders", "users"}
    # A pod without access to the control database.
    alone = start_pod(monkeypatch, tmp_path / "alone", control=None)
    assert (alone.deployment, set(alone.sources)) == (None, {"orders", "users"})


def test_a_control_database_without_deployments_overrides_an_old_copy(
    image, tmp_path, monkeypatch
) -> None:
    control, state = tmp_path / "control.db", tmp_path / "state"
    start_pod(monkeypatch, state, control=control)
    apply_image(load_settings(), 1).write(load_settings().manifest_file)
    add_source(image, "users")
    fresh = start_pod(monkeypatch, state, control=tmp_path / "new.db")
    assert (fresh.deployment, set(fresh.sources)) == (None, {"orders", "users"})


def test_dags_of_a_pod_follow_what_another_pod_applied(image, tmp_path, monkeypatch) -> None:
    """Otherwise a new image shows DAGs whose tasks fail, and an apply shows none of its own."""
    control = tmp_path / "control.db"
    start_pod(monkeypatch, tmp_path / "dags", control=control)
    settings = load_settings()
    assert compiled_manifest(settings).deployment is None
    add_source(image, "users")
    applied = apply_image(settings, 1)
    assert compiled_manifest(settings) == applied
    assert Manifest.read(settings.manifest_file) == applied
    written = settings.manifest_file.stat().st_ino
    assert compiled_manifest(settings) == applied
    assert settings.manifest_file.stat().st_ino == written
    # Another release's deployment, or a database that is away, changes nothing.
    apply_image(settings, 2, readable=False)
    assert compiled_manifest(settings) == applied
    away = settings.model_copy(update={"control_db": "postgresql://nobody@127.0.0.1:1/none"})
    assert compiled_manifest(away) == applied


def test_the_endpoint_of_a_pod_follows_what_another_pod_applied(
    image, tmp_path, monkeypatch
) -> None:
    first = start_pod(monkeypatch, tmp_path / "endpoint", control=tmp_path / "control.db")
    settings = load_settings()
    current = current_manifest(settings.manifest_file, first)
    add_source(image, "users")
    applied = apply_image(settings, 1)
    assert follow_in_force(settings, current().deployment) == applied
    assert current() == applied
    assert follow_in_force(settings, current().deployment) is None


def test_a_local_stack_has_one_manifest_file(image, tmp_path, monkeypatch) -> None:
    """Its apply writes the file itself, and only its own."""
    start_pod(monkeypatch, tmp_path / "state", control=None)
    settings = load_settings()
    apply_image(settings, 1)
    assert compiled_manifest(settings).deployment is None


@pytest.mark.parametrize("found", ["nothing", "the one before"])
def test_a_start_of_the_stack_keeps_what_was_applied(
    image, tmp_path, monkeypatch, found: str
) -> None:
    """Whatever became of the file: edits are applied by `tidemark apply` only."""
    start_pod(monkeypatch, tmp_path / "state", control=None)
    settings = load_settings()
    before = apply_image(settings, 1)
    add_source(image, "users")
    applied = apply_image(settings, 2)
    with ControlStore.open(settings.control_url) as store:
        store.keep_tables("d2-tests", {"gold.old": "2026-01-01"})
    if found == "nothing":
        settings.manifest_file.unlink()
    else:
        # An apply was killed between the control database and the file.
        before.write(settings.manifest_file)
    add_source(image, "refunds")
    write_manifest(settings)
    note_start(settings)
    assert Manifest.read(settings.manifest_file) == applied
    with ControlStore.open(settings.control_url) as store:
        deployment = store.newest_deployment()
    assert (deployment.deployment_id, set(deployment.kept)) == ("d2-tests", {"gold.old"})


def test_a_start_needs_no_right_files_where_something_was_applied(
    image, tmp_path, monkeypatch
) -> None:
    """The manifest was lost while somebody edits the declarations."""
    start_pod(monkeypatch, tmp_path / "state", control=None)
    settings = load_settings()
    applied = apply_image(settings, 1)
    settings.manifest_file.unlink()
    (image / "sources/orders.yml").write_text("format: nonsense\n")
    write_manifest(settings)
    assert Manifest.read(settings.manifest_file) == applied


def test_a_first_start_refuses_wrong_files(image, tmp_path, monkeypatch) -> None:
    """Also if the control database is one that starts with the stack."""
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("TIDEMARK_LOCAL__CONTROL", "postgres")
    monkeypatch.setenv("TIDEMARK_PORTS__POSTGRES", "1")
    (image / "sources/orders.yml").write_text("format: nonsense\n")
    with pytest.raises(ProblemsError):
        write_manifest(load_settings())


def test_a_start_after_another_release_keeps_the_removed_tables(
    image, tmp_path, monkeypatch
) -> None:
    start_pod(monkeypatch, tmp_path / "state", control=None)
    settings = load_settings()
    apply_image(settings, 1, readable=False)
    with ControlStore.open(settings.control_url) as store:
        store.keep_tables("d1-tests", {"gold.old": "2026-01-01"})
    write_manifest(settings)
    note_start(settings)
    with ControlStore.open(settings.control_url) as store:
        deployment = store.deployment_in_force()
    assert (deployment.number, set(deployment.kept)) == (2, {"gold.old"})
    assert Manifest.read(settings.manifest_file).deployment == deployment.deployment_id


def test_a_start_after_another_release_knows_what_was_removed_with_it(
    image, tmp_path, monkeypatch
) -> None:
    add_source(image, "users")
    start_pod(monkeypatch, tmp_path / "state", control=None)
    settings = load_settings()
    text = compiled(settings).model_dump_json().replace("{", '{"of_another_release": 1, ', 1)
    with ControlStore.open(settings.control_url) as store:
        put_in_force(store, text, number=1, name="d1-tests")
    (image / "sources/users.yml").unlink()
    write_manifest(settings)
    note_start(settings)
    with ControlStore.open(settings.control_url) as store:
        assert set(store.deployment_in_force().kept) == {"bronze.users"}


@pytest.mark.parametrize("in_force", [True, False])
def test_a_start_leaves_the_open_steps_of_an_apply_to_the_next(
    image, tmp_path, monkeypatch, *, in_force: bool
) -> None:
    """The apply was killed, and the next release cannot read its manifest; or it was the first."""
    add_source(image, "users")
    start_pod(monkeypatch, tmp_path / "state", control=None)
    settings = load_settings()
    steps = dict.fromkeys(["topic users", "manifest", "snapshot users", "snapshot gone"], "open")
    killed = Deployment(
        deployment_id="d1-x",
        number=1,
        who="tests",
        manifest='{"format": 2}',
        in_force=in_force,
        steps=steps,
    )
    with ControlStore.open(settings.control_url) as store:
        store.begin_deployment(killed)
    write_manifest(settings)
    note_start(settings)
    with ControlStore.open(settings.control_url) as store:
        found = running_now(store, compiled(settings))
        assert store.deployment_in_force().number == 2
    assert [str(one) for one in found.open_steps] == ["snapshot users"]
    assert found.unfinished == found.deployment


def test_a_start_does_not_take_tables_from_an_apply(image, tmp_path, monkeypatch) -> None:
    """It registers the connector slowly, for instance a job that waits for Kafka Connect."""
    start_pod(monkeypatch, tmp_path / "job", control=tmp_path / "control.db")
    settings, registered = load_settings(), []
    applied = [apply_image(settings, 1)]

    def register(_: Settings, manifest: Manifest) -> None:
        registered.append(set(manifest.sources))
        if len(registered) == 1:
            (image / "sources/users.yml").write_text(CAPTURED)
            applied.append(apply_image(settings, 2))

    monkeypatch.setattr(catalog, "register", register)
    monkeypatch.setattr(catalog, "source_problems", lambda *_, **__: [])
    monkeypatch.setattr(catalog, "dsn", lambda *_, **__: "postgresql://")
    catalog.make_connector(settings)
    assert registered == [{"orders"}, {"orders", "users"}]


def test_a_start_with_an_older_file_keeps_the_rights_to_what_was_applied(
    image, tmp_path, monkeypatch
) -> None:
    """An apply was killed between the control database and the file."""
    start_pod(monkeypatch, tmp_path / "state", control=None)
    monkeypatch.setenv("TIDEMARK_SECURITY__ENABLED", "true")
    settings = load_settings()
    before = apply_image(settings, 1)
    add_source(image, "users")
    apply_image(settings, 2)
    before.write(settings.manifest_file)
    granted: set[str] = set()
    monkeypatch.setattr(catalog, "ensure_topics", lambda *_: None)
    monkeypatch.setattr(kafka_rights, "admin", lambda _: None)
    monkeypatch.setattr(
        kafka_rights, "grant", lambda _, rights, *__: granted.update(map(str, rights))
    )
    catalog.make_topics(settings)
    assert any("users" in one for one in granted)


def test_continuous_views_of_a_pod_follow_what_another_pod_applied(
    image, tmp_path, monkeypatch
) -> None:
    first = start_pod(monkeypatch, tmp_path / "streams", control=tmp_path / "control.db")
    settings = load_settings()
    current = current_manifest(settings.manifest_file, first)
    add_source(image, "users")
    applied = apply_image(settings, 1)
    assert current() == first
    copy_in_force(settings, applied)
    assert current() == applied
    # It is written once.
    written = settings.manifest_file.stat().st_ino
    copy_in_force(settings, applied)
    assert settings.manifest_file.stat().st_ino == written
