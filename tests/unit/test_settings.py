"""Where settings come from: which source wins, profiles, and what is said of a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.errors import Location, ProblemsError
from spark_jobs.settings import load_settings


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("PROFILE", "STATE_DIR", "PORTS__KAFKA"):
        monkeypatch.delenv(f"TIDEMARK_{name}", raising=False)
    (tmp_path / "profiles").mkdir()
    (tmp_path / "tidemark.yml").write_text(
        "environment: plain\nports: {kafka: 1, connect: 1, redis: 1}\n"
    )
    (tmp_path / "profiles/large.yml").write_text(
        "environment: large\nports: {kafka: 2, connect: 2}\n"
    )
    return tmp_path


def test_the_environment_wins_over_the_profile_and_that_over_the_project(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load_settings(project).environment == "plain"
    monkeypatch.setenv("TIDEMARK_PROFILE", "large")
    monkeypatch.setenv("TIDEMARK_PORTS__KAFKA", "3")
    chosen = load_settings(project)
    assert chosen.environment == "large"
    assert (chosen.ports.kafka, chosen.ports.connect, chosen.ports.redis) == (3, 2, 1)


def test_a_profile_has_a_state_directory_of_its_own(project: Path) -> None:
    plain, large = load_settings(project), load_settings(project, profile="large")
    assert large.state.name == f"{plain.state.name}-large"
    assert large.state.parent == plain.state.parent


def test_settings_move_to_another_directory_without_reading_the_file_again(
    project: Path, tmp_path: Path
) -> None:
    settings = load_settings(project, lake_root="s3a://shop", control_db="sqlite:///x.db")
    before = (settings.state, settings.lake, settings.control_url, settings.secrets_dir)
    (project / "tidemark.yml").write_text("environment: later\n")
    moved = settings.moved_to(tmp_path / "work")
    assert moved.state == tmp_path / "work"
    assert moved.lake == str(tmp_path / "work/lake")
    assert moved.control_url == f"sqlite:///{tmp_path}/work/control.db"
    assert moved.secrets_dir == tmp_path / "work/secrets"
    assert (moved.environment, moved.ports) == ("plain", settings.ports)
    assert (settings.state, settings.lake, settings.control_url, settings.secrets_dir) == before


def test_an_unknown_profile_is_reported_with_the_known_ones(project: Path) -> None:
    with pytest.raises(ProblemsError) as caught:
        load_settings(project, profile="huge")
    [problem] = caught.value.problems
    assert problem.key == "profile"
    assert "profiles/huge.yml" in problem.primary
    assert "large" in problem.primary


@pytest.mark.parametrize(
    ("profile", "file"), [("large", "profiles/large.yml"), ("", "tidemark.yml")]
)
def test_a_wrong_value_is_reported_with_its_file(project: Path, profile: str, file: str) -> None:
    (project / file).write_text("ports: {kafka: many}\n")
    with pytest.raises(ProblemsError) as caught:
        load_settings(project, profile=profile)
    [problem] = caught.value.problems
    assert problem.key == "ports.kafka"
    assert problem.location.file == file


@pytest.mark.parametrize("value", ["2026-01-01", "", "[1, 2]", ".nan", "-.inf"])
def test_a_variable_of_another_kind_is_one_problem(project: Path, value: str) -> None:
    (project / "tidemark.yml").write_text(f"variables:\n  since: {value}\n")
    with pytest.raises(ProblemsError) as caught:
        load_settings(project)

    [problem] = caught.value.problems
    assert problem.key == "variables.since"
    assert "a date in quotes" in problem.problem
    assert problem.location.file == "tidemark.yml"


@pytest.mark.parametrize("where", ["file", "environment"])
def test_old_names_are_read_with_a_warning(
    project: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, where: str
) -> None:
    if where == "file":
        (project / "tidemark.yml").write_text(
            "care: {retention_days: 3, small_files: 9}\nairflow: {lanes: {live: 7}}\n"
        )
    else:
        monkeypatch.setenv("TIDEMARK_CARE__RETENTION_DAYS", "3")
        monkeypatch.setenv("TIDEMARK_CARE__SMALL_FILES", "9")
        monkeypatch.setenv("TIDEMARK_AIRFLOW__LANES__LIVE", "7")
    # What is set under the new name wins.
    monkeypatch.setenv("TIDEMARK_MAINTENANCE__SMALL_FILES", "4")
    found = load_settings(project)
    assert (found.maintenance.retention_days, found.maintenance.small_files) == (3, 4)
    assert (found.airflow.pools.live, found.airflow.pools.replay) == (7, 1)
    assert "care is called maintenance" in caplog.text
    assert "airflow.lanes is called airflow.pools" in caplog.text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gol: {engine: auto}", "'gol': there is no such setting. Did you mean \"gold\"?"),
        ("gold: {engin: auto}", "'gold.engin': there is no such setting. Did you mean \"engine\"?"),
        ("xyzzy: 1", "'xyzzy': there is no such setting"),
        ("replay:", "'replay': it is a section: write its keys below it"),
        ("replay: auto", "'replay': it is a section: write its keys below it"),
    ],
)
def test_a_mistake_in_a_key_is_told_in_plain_words(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "tidemark.yml").write_text(text)
    with pytest.raises(ProblemsError) as caught:
        load_settings(tmp_path)
    assert said in str(caught.value.problems[0])


@pytest.mark.parametrize("file", ["tidemark.yml", "profiles/large.yml"])
@pytest.mark.parametrize(
    ("text", "key", "place"),
    [
        ("gold: text\n", "gold", (2, 1)),
        ("gold:\n", "gold", (2, 1)),
        ("gold: [auto]\n", "gold", (2, 1)),
        ("airflow:\n  # of tasks\n  pools: 4\n", "airflow.pools", (4, 3)),
        ("variables: 7\n", "variables", (2, 1)),
        ("spark: {conf: a=b}\n", "spark.conf", (2, 9)),
    ],
)
def test_a_text_in_place_of_a_section_is_an_error_whatever_else_sets_its_keys(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    file: str,
    text: str,
    key: str,
    place: tuple[int, int],
) -> None:
    """The merge of all sources keeps the mapping, so that nobody was told of the text."""
    (project / file).write_text(f"environment: plain\n{text}")
    monkeypatch.setenv("TIDEMARK_GOLD__ENGINE", "spark")
    monkeypatch.setenv("TIDEMARK_AIRFLOW__POOLS__LIVE", "2")
    monkeypatch.setenv("TIDEMARK_VARIABLES__SINCE", "2")
    monkeypatch.setenv("TIDEMARK_SPARK__CONF", '{"a": "b"}')
    with pytest.raises(ProblemsError) as caught:
        load_settings(project, profile="large" if "large" in file else "")
    [problem] = caught.value.problems
    assert (problem.key, problem.location) == (key, Location(file, *place))
    assert "it is a section" in problem.primary


def test_all_wrong_settings_are_told_at_once(project: Path, monkeypatch) -> None:
    monkeypatch.setenv("TIDEMARK_GOLD__ENGINE", "spark")
    (project / "tidemark.yml").write_text("gold: text\nports: {kafka: many}\nxyzzy: 1\n")
    with pytest.raises(ProblemsError) as caught:
        load_settings(project)
    assert {one.key for one in caught.value.problems} == {"gold", "ports.kafka", "xyzzy"}


@pytest.mark.parametrize("name", ["gold", "variables"])
def test_a_text_in_the_variable_of_a_section_is_an_error(
    project: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(f"TIDEMARK_{name.upper()}", "text")
    with pytest.raises(ProblemsError) as caught:
        load_settings(project)
    [problem] = caught.value.problems
    assert problem.key == name
    assert f"TIDEMARK_{name.upper()}" in problem.render()


def test_an_unknown_key_under_an_old_name_is_an_error(project: Path) -> None:
    (project / "tidemark.yml").write_text("care: {retention: 3}\n")
    with pytest.raises(ProblemsError) as caught:
        load_settings(project)
    [problem] = caught.value.problems
    assert problem.key == "maintenance.retention"
