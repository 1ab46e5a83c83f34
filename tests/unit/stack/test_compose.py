"""The compose project: current, complete, like the local stack, and safe by what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import compose_spec
import pytest
import yaml

from spark_jobs.settings import DEMO_FILE, REPOSITORY, load_settings
from spark_jobs.stack.compose import BASE_IMAGE, GATEWAY, HOME, STATE, render, shipped_settings
from spark_jobs.stack.foreground import main, stack_steps
from spark_jobs.stack.java import MINIMUM_JAVA
from spark_jobs.stack.parts import Part

DOCKER = REPOSITORY / "docker"
DOCKERFILES = sorted(DOCKER.glob("*/Dockerfile"))


@pytest.fixture
def shipped(monkeypatch):
    """The settings that the shipped files are written for: the repository's, nobody's own."""
    for name in [name for name in os.environ if name.startswith("TIDEMARK_")]:
        monkeypatch.delenv(name)
    return shipped_settings()


@pytest.fixture
def services() -> dict:
    return yaml.safe_load((DOCKER / "compose.yml").read_text())["services"]


def test_the_files_are_what_the_stack_says_now(shipped) -> None:
    rendered = render(shipped)
    remedy = "run: python -m spark_jobs.stack.compose"
    assert (DOCKER / "compose.yml").read_text() == rendered.compose, remedy
    assert (DOCKER / "haproxy.cfg").read_text() == rendered.haproxy, remedy


def test_the_gateway_s_memory_does_not_depend_on_the_limit_of_open_files() -> None:
    """Without ``maxconn`` its tables are as large as that limit, which may be 2^30."""
    sections = (DOCKER / "haproxy.cfg").read_text().split("\ndefaults\n")[0].splitlines()
    place = sections.index("global")
    assert re.fullmatch(r"    maxconn \d{4}", sections[place + 1])


def test_every_part_and_task_is_a_service_that_runs_it(shipped, services) -> None:
    steps = {step.name: step for step in stack_steps(shipped)}
    running = {
        one["command"][1] for one in services.values() if one.get("command", [""])[0] == "run"
    }
    assert running == set(steps)
    for name, step in steps.items():
        described = services[name]
        assert described["command"] == ["run", name]
        assert ("healthcheck" in described) == isinstance(step, Part)
        assert not isinstance(step, Part) or described["healthcheck"]["test"][-2:] == [
            "probe",
            name,
        ]
        assert described["environment"]["TIDEMARK_PROJECT"] == str(HOME)
        assert described["volumes"] == [f"state:{STATE}"]


# What a probe takes: the start of Python and its imports.
PROBE_CPU_SECONDS = 2


def test_health_checks_leave_the_cores_to_the_parts(services) -> None:
    checked = [one["healthcheck"] for one in services.values() if "stop_signal" in one]
    seconds = [int(one["interval"].removesuffix("s")) for one in checked]
    assert sum(PROBE_CPU_SECONDS / one for one in seconds) < 0.5
    # On a busy machine a probe takes many times its CPU.
    assert all(int(one["timeout"].removesuffix("s")) >= 30 for one in checked)


def test_a_service_waits_for_all_that_its_part_needs(shipped, services) -> None:
    for step in stack_steps(shipped):
        for need in step.needs:
            waits = services[step.name]["depends_on"]
            assert need in waits or f"{need}-finish" in waits
    order = TopologicalSorter({name: one.get("depends_on", {}) for name, one in services.items()})
    assert set(order.static_order()) == set(services)


def test_only_the_gateway_has_ports_and_only_on_loopback(shipped, services) -> None:
    assert [name for name, one in services.items() if "ports" in one] == [GATEWAY]
    published = {int(port.split(":")[1]) for port in services[GATEWAY]["ports"]}
    assert all(port.startswith("127.0.0.1:") for port in services[GATEWAY]["ports"])
    assert published == {
        port
        for step in stack_steps(shipped)
        if isinstance(step, Part)
        for port in step.ports.values()
    }
    for name, one in services.items():
        assert name == GATEWAY or one["network_mode"] == f"service:{GATEWAY}"
        assert one["cap_drop"] == ["ALL"]
        assert "privileged" not in one


def test_no_file_holds_a_secret(services) -> None:
    names = {name for one in services.values() for name in one.get("environment", {})}
    assert not [name for name in names if re.search("PASSWORD|SECRET|TOKEN|KEY|CONN|DB", name)]
    for path in DOCKERFILES:
        assert not re.search(r"(?i)password|secret|token", path.read_text()), path


def test_every_image_has_a_dockerfile_and_ends_as_an_ordinary_user(services) -> None:
    used = {one["image"].removeprefix("tidemark-") for one in services.values()}
    assert used == {path.parent.name for path in DOCKERFILES}
    for path in DOCKERFILES:
        lines = path.read_text().splitlines()
        users = [line.split()[1] for line in lines if line.startswith("USER ")]
        base = [line for line in lines if line.startswith("FROM ")][-1].split()[1]
        assert users[-1] != "0" if users else base == BASE_IMAGE


def test_images_have_compiled_modules_because_their_user_cannot_write_any() -> None:
    built = (DOCKER / "base/Dockerfile").read_text().split("\nFROM ")[1]
    # The environment's packages, and the project's own.
    assert "UV_COMPILE_BYTECODE=1 sh scripts/bootstrap.sh" in built
    assert ".venv/bin/python -m compileall -q spark_jobs dags" in built


def test_versions_come_from_the_lock_and_the_poms_alone() -> None:
    pinned = {
        *re.findall(
            r'name = "[^"]+"\nversion = "(\d+\.\d+\.\d+)"', (REPOSITORY / "uv.lock").read_text()
        ),
        *re.findall(r">(\d+\.\d+\.\d+)", (REPOSITORY / "jars/kafka/pom.xml").read_text()),
    }
    for path in DOCKERFILES:
        text = path.read_text()
        assert not pinned & set(re.findall(r"\d+\.\d+\.\d+", text))
        assert set(re.findall(r"FROM (\S+)", text)) <= {"${DEBIAN}", BASE_IMAGE}
        assert set(re.findall(r"ARG DEBIAN=(\S+)", text)) <= {"debian:bookworm-slim"}
        assert set(re.findall(r"openjdk-(\d+)", text)) <= {str(MINIMUM_JAVA)}


def test_the_compose_specification_accepts_the_file() -> None:
    project = compose_spec.PyCompose.from_yaml((DOCKER / "compose.yml").read_text())
    project.validate()
    wrong = (DOCKER / "compose.yml").read_text().replace("stop_signal", "stop_sign")
    with pytest.raises(Exception, match="stop_sign"):
        compose_spec.PyCompose.from_yaml(wrong)


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.parent.name)
def test_hadolint_has_nothing_to_say(path: Path) -> None:
    hadolint = Path(sys.executable).parent / "hadolint"
    done = subprocess.run(
        [hadolint, "--no-color", "--config", str(DOCKER / ".hadolint.yaml"), str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout == ""


@pytest.mark.parametrize(
    "arguments", [("probe", "manifest"), ("finish", "topics"), ("stop", "kafka")]
)
def test_a_verb_that_does_not_apply_is_refused(arguments, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("TIDEMARK_PROJECT", str(REPOSITORY))
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path))
    with pytest.raises(SystemExit, match="does not apply"):
        main(arguments)


def test_the_manifest_task_compiles_the_project(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("TIDEMARK_PROJECT", str(REPOSITORY))
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    assert main(("run", "manifest")) == 0
    assert (tmp_path / "state/manifest.json").exists()


def test_a_part_that_does_not_serve_fails_its_probe(monkeypatch, tmp_path, capsys) -> None:
    monkeypatch.setenv("TIDEMARK_PROJECT", str(REPOSITORY))
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("TIDEMARK_PORTS__KAFKA", "1")
    assert main(("probe", "kafka")) == 1
    assert "does not listen yet" in capsys.readouterr().out


def test_a_demo_in_the_same_checkout_does_not_reach_the_files(shipped, tmp_path) -> None:
    (tmp_path / DEMO_FILE).write_text(
        "gold: {every_override: 1 minute, scheduled_at_first: [daily_order_summary]}"
    )
    there = load_settings(REPOSITORY, state_dir=tmp_path)
    assert "EVERY_OVERRIDE" in render(there).compose
    assert "EVERY_OVERRIDE" not in render(shipped).compose
    assert render(there.model_copy(update={"gold": shipped.gold})) == render(shipped)
