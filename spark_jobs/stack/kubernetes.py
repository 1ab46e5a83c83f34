"""The stack's own parts on Kubernetes: a kustomize base, written from the same list of parts.

``python -m spark_jobs.stack.kubernetes`` writes ``kubernetes/base``. Kafka, the databases and the
object store are external; an overlay names them. Commands and probes come from the stack's parts;
``workloads`` has what only Kubernetes needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import version
from typing import Any

import yaml

from spark_jobs.settings import REPOSITORY, Settings
from spark_jobs.stack.airflow import API_SERVER, preparation
from spark_jobs.stack.airflow_config import airflow_environment, airflow_options
from spark_jobs.stack.compose import BASE_IMAGE, HOME, IMAGES, PYTHON, STATE, shipped_settings
from spark_jobs.stack.environment import settings_variables
from spark_jobs.stack.foreground import MANIFEST, stack_steps
from spark_jobs.stack.parts import Part
from spark_jobs.stack.pods import (
    AIRFLOW_SETTINGS,
    SETTINGS,
    called_port,
    part_container,
    pod,
    secret_variables,
    step_container,
    waits_for_migration,
)
from spark_jobs.stack.resources import (
    Described,
    account,
    budget,
    claim,
    labels,
    policy,
    resource,
    service,
)
from spark_jobs.stack.workloads import CONNECTOR, CONTROL_DB, WORKLOADS, Workload

BASE = REPOSITORY / "kubernetes/base"
# How often pods read the DAG files, to notice a deployment.
POD_PARSE_SECONDS = 30
# Placeholders, which an overlay replaces; secrets have none.
KAFKA = "kafka:9092"
LAKE = "s3a://tidemark/lake"
KEPT_SECONDS = 3600
FILE_HEAD = (
    "# Written by `python -m spark_jobs.stack.kubernetes`; a test checks that it is current.\n"
)


class NoAlias(yaml.SafeDumper):
    """Writes YAML without aliases, so that patches and readers find each value in its place."""

    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True


def main() -> None:
    """Write the base, and delete files that are no longer part of it."""
    files = render(shipped_settings())
    BASE.mkdir(parents=True, exist_ok=True)
    for path in BASE.iterdir():
        if path.name not in files:
            path.unlink()
    for name, text in files.items():
        (BASE / name).write_text(text)


def render(settings: Settings) -> dict[str, str]:
    """The files of the base by name, with paths inside the images."""
    # Each pod has its own network, and policies control access to it.
    everywhere = "0.0.0.0"  # noqa: S104
    served = {**settings.spark.conf, "spark.connect.grpc.binding.address": everywhere}
    inside = settings.model_copy(
        update={
            "project_dir": HOME,
            "state_dir": STATE,
            "spark_jars": HOME / "jars/spark/target/dependency",
            "kafka_jars": HOME / "jars/kafka/target/dependency",
            "kafka_bootstrap_servers": KAFKA,
            "lake_root": LAKE,
            "environment": "kubernetes",
            "airflow": settings.airflow.model_copy(update={"url": airflow_url(settings)}),
            # No pod has the workers' files: each would choose a placeholder of its own.
            "kafka_connect": settings.kafka_connect.model_copy(
                update={
                    "url": f"http://connect:{settings.ports.connect}",
                    # The workers are ours too, and nobody else restarts their connector.
                    "restart_failed": True,
                }
            ),
            "spark": settings.spark.model_copy(update={"conf": served}),
        }
    )
    parts = {one.name: one for one in stack_steps(inside) if isinstance(one, Part)}
    resources: dict[str, list[Described]] = {"account": [account()]}
    for name, workload in WORKLOADS.items():
        resources[name] = part_resources(parts[name], workload, settings=inside)
    resources["connector"] = [connector_job(), policy("connector", CONNECTOR, port=None)]
    texts = {f"{name}.yaml": documents(found) for name, found in resources.items()}
    return {
        **texts,
        "settings.env": variables_file(settings_variables(inside)),
        "airflow.env": variables_file(airflow_variables(inside).items()),
        "kustomization.yaml": FILE_HEAD + dump(kustomization(texts)),
    }


def image_of(step: str) -> str:
    """The image of a step, as this release's; an overlay names the registry."""
    name = f"tidemark-{IMAGES[step]}" if step in IMAGES else BASE_IMAGE
    return f"{name}:{version('tidemark')}"


def part_resources(part: Part, workload: Workload, *, settings: Settings) -> list[Described]:
    """A part's workload, service, network policy and disruption budget."""
    name, port = part.name, called_port(part, workload)
    image = image_of(name)
    template = pod(
        name,
        workload,
        container=part_container(part, workload, image=image),
        inits=steps_before(part, settings),
    )
    template["spec"]["terminationGracePeriodSeconds"] = part.stop_seconds
    spec: Described = {
        "replicas": workload.replicas,
        "selector": {"matchLabels": labels(name)},
        "template": template,
    }
    if workload.single:
        spec = {"serviceName": name, **spec}
        if workload.disk:
            spec["volumeClaimTemplates"] = [claim(workload)]
    kind = "StatefulSet" if workload.single else "Deployment"
    found = [resource("apps/v1", kind, name) | {"spec": spec}, policy(name, workload, port=port)]
    if workload.single or port is not None:
        found.append(service(name, workload, port=port))
    if workload.replicas > 1:
        found.append(budget(name))
    return found


def steps_before(part: Part, settings: Settings) -> list[Described]:
    """Init containers of a part; each of their steps can be repeated."""
    image = image_of(part.name)
    manifest = manifest_step(image)
    match part.name:
        case "streams":
            return [manifest, step_container("topics", image=image)]
        case "endpoint":
            return [manifest]
        case "airflow-scheduler":
            return [migration(settings, image=image), manifest]
        case "airflow-dag-processor":
            return [waits_for_migration(image), manifest]
        case _:
            return [waits_for_migration(image)] if part.name.startswith("airflow-") else []


def manifest_step(image: str) -> Described:
    """Writes the manifest that was applied: the control database knows it."""
    return step_container(MANIFEST, image=image) | {"env": secret_variables((CONTROL_DB,))}


def migration(settings: Settings, *, image: str) -> Described:
    """Migrates Airflow's database to this release, and creates users and pools."""
    option, module, *arguments = preparation(settings)
    command = [PYTHON, option, module]
    return {"name": "migration", "image": image, "command": command, "args": arguments}


def connector_job() -> Described:
    """Registers the connector of the Debezium sources; retries until Connect is up."""
    name = "connector"
    image = image_of(name)
    container = step_container(name, image=image) | {"env": secret_variables(CONNECTOR.secrets)}
    inits = [manifest_step(image)]
    template = pod(name, CONNECTOR, container=container, inits=inits)
    template["spec"]["restartPolicy"] = "OnFailure"
    # A job is immutable: this one is deleted when done, and the next release creates its own.
    spec = {"backoffLimit": 20, "ttlSecondsAfterFinished": KEPT_SECONDS, "template": template}
    return resource("batch/v1", "Job", name) | {"spec": spec}


def airflow_url(settings: Settings) -> str:
    """Where pods reach Airflow."""
    return f"http://{API_SERVER}:{settings.ports.airflow}"


def airflow_variables(settings: Settings) -> dict[str, str]:
    """The local stack's Airflow as environment variables, at the addresses of the cluster."""
    api = airflow_url(settings)
    options = airflow_options(settings)
    # The api-server requests task logs from a pod by the host name that the pod reports.
    options["core"] |= {
        "hostname_callable": "socket.getfqdn",
        "execution_api_server_url": f"{api}/execution/",
    }
    options["api"] |= {"host": "0.0.0.0", "base_url": api}  # noqa: S104 - see render
    # A deployment cannot touch the files of another pod's image.
    often = min(settings.airflow.parse_seconds, POD_PARSE_SECONDS)
    options["dag_processor"] |= {"min_file_process_interval": str(often)}
    # The token is sent to the server's pod unencrypted: policies control access to the network.
    remote = f"sc://spark-connect:{settings.ports.spark_connect}/;use_ssl=false"
    spark = settings.spark.model_copy(update={"remote": remote})
    return {
        **airflow_environment(settings.model_copy(update={"spark": spark})),
        "PYTHONPATH": str(HOME),
        **{
            f"AIRFLOW__{section.upper()}__{key.upper()}": value.replace(str(REPOSITORY), str(HOME))
            for section, values in options.items()
            for key, value in values.items()
        },
    }


def kustomization(texts: Iterable[str]) -> Described:
    """The index of the base. A changed setting renames its config map, which restarts pods."""
    return {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": sorted(texts),
        "configMapGenerator": [
            {"name": SETTINGS, "envs": ["settings.env"]},
            {"name": AIRFLOW_SETTINGS, "envs": ["airflow.env"]},
        ],
    }


def variables_file(pairs: Iterable[tuple[str, str]]) -> str:
    """Variables as kustomize reads them: one line each, without quotes."""
    return FILE_HEAD + "".join(f"{name}={value}\n" for name, value in pairs)


def documents(resources: Iterable[Mapping[str, Any]]) -> str:
    """Resources of Kubernetes as the documents of one YAML file."""
    return FILE_HEAD + "---\n".join(dump(one) for one in resources)


def dump(value: Mapping[str, Any]) -> str:
    """A mapping as YAML, with keys in its order."""
    return yaml.dump(value, Dumper=NoAlias, sort_keys=False, width=100)


if __name__ == "__main__":
    main()
