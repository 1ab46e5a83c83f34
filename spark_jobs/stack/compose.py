"""The stack as a compose project: the same parts, in containers.

``python -m spark_jobs.stack.compose`` writes ``docker/compose.yml`` and ``docker/haproxy.cfg`` for
the project's settings. All parts share one network, the gateway's, so each finds the others where
the local stack has them; nothing here says a second time how a part is started or judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from spark_jobs.settings import REPOSITORY, Settings, load_settings
from spark_jobs.stack.catalog import ON_DEMAND
from spark_jobs.stack.environment import settings_variables
from spark_jobs.stack.foreground import MANIFEST, stack_steps
from spark_jobs.stack.parts import Part, Step, nothing
from spark_jobs.stack.ports import LOOPBACK

# Where the images have the repository, and where the shared volume is mounted.
HOME = Path("/opt/tidemark")
STATE = Path("/var/lib/tidemark")
PYTHON = str(HOME / ".venv/bin/python")
BASE_IMAGE = "tidemark-base"
GATEWAY = "gateway"
# A part listens on loopback; the gateway listens beside it, that many ports above.
GATEWAY_OFFSET = 10_000
# Many times what clients open: PostgreSQL alone admits 100.
GATEWAY_CONNECTIONS = 2_000
# A probe starts a Python process, which takes seconds of a core.
LOOK_SECONDS, LOOK_TIMEOUT = 60, 30
START_SECONDS = 10
IMAGES = {
    "postgres": "postgres",
    "redis": "redis",
    "cassandra": "cassandra",
    "kafka": "kafka",
    "connect": "kafka",
    "spark-connect": "spark",
    "streams": "spark",
    "endpoint": "spark",
    "airflow-database": "airflow",
    "airflow-api-server": "airflow",
    "airflow-scheduler": "airflow",
    "airflow-dag-processor": "airflow",
    "airflow-triggerer": "airflow",
}
FILE_HEAD = "# Written by `python -m spark_jobs.stack.compose`; a test checks that it is current.\n"


class OneAnchor(yaml.SafeDumper):
    """Writes the shared environment once, as a YAML anchor with a readable name."""

    def generate_anchor(self, node: Any) -> str:
        del node
        return "environment"


@dataclass(frozen=True)
class Rendered:
    """The files of the compose project."""

    compose: str
    haproxy: str


def shipped_settings() -> Settings:
    """The repository's settings, without the schedule of a demo that ran in it."""
    # A directory that does not exist: the demo's schedule is in the state directory.
    return load_settings(REPOSITORY, state_dir=REPOSITORY / "docker/no-state")


def main() -> None:
    """Write both files."""
    rendered = render(shipped_settings())
    (REPOSITORY / "docker/compose.yml").write_text(rendered.compose)
    (REPOSITORY / "docker/haproxy.cfg").write_text(rendered.haproxy)


def render(settings: Settings) -> Rendered:
    """The files for these settings, with paths inside the images."""
    inside = settings.model_copy(
        update={
            "project_dir": HOME,
            "state_dir": STATE,
            "spark_jars": HOME / "jars/spark/target/dependency",
            "kafka_jars": HOME / "jars/kafka/target/dependency",
            "cassandra_jars": HOME / "jars/cassandra/target/dependency",
        }
    )
    steps = stack_steps(inside)
    ports = published_ports(steps)
    services: dict[str, Any] = {GATEWAY: gateway(ports)}
    finished = {one.name for one in steps if isinstance(one, Part) and one.finish is not nothing}
    environment = dict(settings_variables(inside))
    for step in steps:
        services[step.name] = service(step, finished, environment)
        if step.name in finished:
            services[finish_name(step.name)] = finishing(step, environment)
    project = {"name": "tidemark", "services": services, "volumes": {"state": {}}}
    text = yaml.dump(project, Dumper=OneAnchor, sort_keys=False, width=100)
    return Rendered(FILE_HEAD + text, haproxy(ports))


def service(step: Step, finished: set[str], environment: dict[str, str]) -> dict[str, Any]:
    """The service of a part, which stays up, or of a task, which ends, with the keys of Compose.

    Args:
        step: the part or task.
        finished: names of the parts with a final step.
        environment: variables of the service.
    """
    image = f"tidemark-{IMAGES[step.name]}" if step.name in IMAGES else BASE_IMAGE
    needs = step.needs if step.name == MANIFEST else (MANIFEST, *step.needs)
    described: dict[str, Any] = {
        "image": image,
        "build": build(image),
        **common(environment),
        "command": ["run", step.name],
        "depends_on": {GATEWAY: {"condition": "service_started"}}
        | {name: condition for one in needs for name, condition in [requirement(one, finished)]},
    }
    if not isinstance(step, Part):
        return described
    return described | {
        **profile(step),
        "restart": "unless-stopped",
        "stop_signal": f"SIG{step.stop_signal}",
        "stop_grace_period": f"{step.stop_seconds}s",
        "healthcheck": {
            "test": ["CMD", PYTHON, "-m", "spark_jobs.stack.foreground", "probe", step.name],
            "interval": f"{LOOK_SECONDS}s",
            "timeout": f"{LOOK_TIMEOUT}s",
            "retries": 3,
            "start_period": f"{step.ready_seconds:.0f}s",
            "start_interval": f"{START_SECONDS}s",
        },
    }


def profile(step: Step) -> dict[str, Any]:
    """The profile by which `docker compose --profile NAME up` starts a part on demand."""
    return {"profiles": [step.name]} if step.name in ON_DEMAND else {}


def finishing(step: Step, environment: dict[str, str]) -> dict[str, Any]:
    """The service that does a part's final step and ends; other services wait for its end."""
    return {
        "image": BASE_IMAGE,
        **common(environment),
        "command": ["finish", step.name],
        **profile(step),
        "depends_on": {step.name: {"condition": "service_healthy"}},
    }


def common(environment: dict[str, str]) -> dict[str, Any]:
    """Keys of Compose that all services of the project share."""
    return {
        "environment": environment,
        "network_mode": f"service:{GATEWAY}",
        "volumes": [f"state:{STATE}"],
        "init": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
    }


def requirement(name: str, finished: set[str]) -> tuple[str, dict[str, str]]:
    """The service that meets a requirement, and the ``condition`` that it must have reached."""
    if name in finished:
        return finish_name(name), {"condition": "service_completed_successfully"}
    if name in IMAGES and name != "airflow-database":
        return name, {"condition": "service_healthy"}
    return name, {"condition": "service_completed_successfully"}


def finish_name(part: str) -> str:
    """The service that completes a part."""
    return f"{part}-finish"


def build(image: str) -> dict[str, Any]:
    """How an image is built, with the keys of Compose; all but the base are built from the base."""
    described: dict[str, Any] = {
        "context": "..",
        "dockerfile": f"docker/{image.removeprefix('tidemark-')}/Dockerfile",
    }
    if image != BASE_IMAGE:
        described["additional_contexts"] = {BASE_IMAGE: f"service:{MANIFEST}"}
    return described


def gateway(ports: Sequence[int]) -> dict[str, Any]:
    """The one service with a network of its own; it publishes on the host's loopback only."""
    return {
        "image": "tidemark-gateway",
        "build": {"context": ".", "dockerfile": "gateway/Dockerfile"},
        "ports": [f"{LOOPBACK}:{port}:{port + GATEWAY_OFFSET}" for port in ports],
        "restart": "unless-stopped",
        "read_only": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "healthcheck": {
            "test": ["CMD", "haproxy", "-c", "-f", "/etc/haproxy/haproxy.cfg"],
            "interval": "30s",
            "timeout": "5s",
            "retries": 3,
        },
    }


def published_ports(steps: Sequence[Step]) -> list[int]:
    """Every port that a part listens on."""
    return sorted({port for one in steps if isinstance(one, Part) for port in one.ports.values()})


def haproxy(ports: Sequence[int]) -> str:
    """The gateway's configuration: a TCP proxy for each port."""
    head = [
        FILE_HEAD.rstrip("\n"),
        "global",
        # Its tables have room for so many. Otherwise it takes the limit of open files, which may be
        # 2^30 in a container: gigabytes, or it does not start.
        f"    maxconn {GATEWAY_CONNECTIONS}",
        "defaults",
        "    mode tcp",
        "    timeout connect 5s",
        # A query or a long poll may be silent for long.
        "    timeout client 1h",
        "    timeout server 1h",
    ]
    listeners = [
        f"\nlisten port-{port}\n"
        f"    bind *:{port + GATEWAY_OFFSET}\n    server part {LOOPBACK}:{port}"
        for port in ports
    ]
    return "\n".join([*head, *listeners]) + "\n"


if __name__ == "__main__":
    main()
