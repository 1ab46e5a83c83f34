"""Kubernetes' resources around a pod: its name in DNS, who may call it, what it keeps."""

from __future__ import annotations

from typing import Any

from spark_jobs.stack.workloads import Workload

PROJECT = "tidemark"

Described = dict[str, Any]


def labels(name: str) -> dict[str, str]:
    """What every resource of a part carries; services and policies select by it."""
    return {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": PROJECT}


def resource(api: str, kind: str, name: str) -> Described:
    """The head of a resource."""
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, "labels": labels(name)}}


def service(name: str, workload: Workload, *, port: int | None) -> Described:
    """Its name in the cluster's DNS; the pod of a single part has one of its own below it."""
    spec: Described = {"selector": labels(name)}
    if workload.single:
        # Logs are asked for as long as there is a pod.
        spec |= {"clusterIP": "None", "publishNotReadyAddresses": True}
    if port is not None:
        spec["ports"] = [{"name": "main", "port": port, "targetPort": "main"}]
    return resource("v1", "Service", name) | {"spec": spec}


def policy(name: str, workload: Workload, *, port: int | None) -> Described:
    """Nobody calls a part but those that need it; its node's probes always may."""
    spec: Described = {
        "podSelector": {"matchLabels": labels(name)},
        "policyTypes": ["Ingress"],
        "ingress": [],
    }
    if port is not None:
        rule: Described = {"ports": [{"port": "main"}]}
        if workload.callers:
            callers = [{"podSelector": {"matchLabels": labels(one)}} for one in workload.callers]
            rule = {"from": callers, **rule}
        spec["ingress"] = [rule]
    return resource("networking.k8s.io/v1", "NetworkPolicy", name) | {"spec": spec}


def claim(workload: Workload) -> Described:
    """The volume that outlives a pod."""
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": f"{workload.disk}Gi"}},
    }
    return {"metadata": {"name": "state"}, "spec": spec}


def account() -> Described:
    """Who the pods are; an object store may know them by it. They do not call Kubernetes."""
    return resource("v1", "ServiceAccount", PROJECT) | {"automountServiceAccountToken": False}


def budget(name: str) -> Described:
    """How many pods may be away at once for the sake of their machines."""
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": labels(name)}}
    return resource("policy/v1", "PodDisruptionBudget", name) | {"spec": spec}
