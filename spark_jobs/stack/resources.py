"""Kubernetes resources of a pod: service, network policy, volume claim, account."""

from __future__ import annotations

from typing import Any

from spark_jobs.stack.workloads import Workload

PROJECT = "tidemark"

Described = dict[str, Any]


def labels(name: str) -> dict[str, str]:
    """The labels of all resources of a part, by which services and policies select."""
    return {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": PROJECT}


def resource(api: str, kind: str, name: str) -> Described:
    """The common keys of a resource."""
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, "labels": labels(name)}}


def service(name: str, workload: Workload, *, port: int | None) -> Described:
    """A service; headless for a single part, so that its pod has a DNS name too."""
    spec: Described = {"selector": labels(name)}
    if workload.single:
        # Logs can be requested as long as the pod exists.
        spec |= {"clusterIP": "None", "publishNotReadyAddresses": True}
    if port is not None:
        spec["ports"] = [{"name": "main", "port": port, "targetPort": "main"}]
    return resource("v1", "Service", name) | {"spec": spec}


def policy(name: str, workload: Workload, *, port: int | None) -> Described:
    """A network policy that lets in the parts that call this one; probes are always allowed."""
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
    """The claim of a volume that outlives the pod."""
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": f"{workload.disk}Gi"}},
    }
    return {"metadata": {"name": "state"}, "spec": spec}


def account() -> Described:
    """The service account of the pods, for the object store; they do not call Kubernetes."""
    return resource("v1", "ServiceAccount", PROJECT) | {"automountServiceAccountToken": False}


def budget(name: str) -> Described:
    """The disruption budget: how many pods may be evicted at the same time."""
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": labels(name)}}
    return resource("policy/v1", "PodDisruptionBudget", name) | {"spec": spec}
