"""Reads what it can of a manifest that another release wrote: its entries, one by one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import TypeVar

from pydantic import ValidationError

from spark_jobs.definitions.vocabulary import SourceFormat
from spark_jobs.graph.manifest import GoldEntry, Manifest, SilverEntry, SinkEntry, SourceEntry
from spark_jobs.names import Layer
from spark_jobs.state.deployments import Deployment
from spark_jobs.state.types import JsonObject

_Entry = TypeVar("_Entry", SourceEntry, SilverEntry, GoldEntry, SinkEntry)


def entries(text: str) -> JsonObject:
    """The entries of a stored manifest, by kind and name; none if its format is another one."""
    try:
        stored = json.loads(text)
    except ValueError:
        return {}
    known = isinstance(stored, dict) and stored.get("format") == Manifest(project="").format
    return stored if known else {}


def readable(text: str, project: Manifest) -> Manifest:
    """The manifest with the entries that this release can read.

    Args:
        text: as stored.
        project: has what is taken in place of an entry that cannot be read, and of a manifest in
            another format.
    """
    stored = entries(text)
    if not stored:
        return project
    sources = _read(SourceEntry, stored.get("sources", {}), project.sources)
    silver = _read(SilverEntry, stored.get("silver", {}), project.silver)
    return Manifest(
        project=project.project,
        sources=sources,
        silver={name: one for name, one in silver.items() if one.source in sources},
        gold=_read(GoldEntry, stored.get("gold", {}), project.gold),
        sinks=_read(SinkEntry, stored.get("sinks", {}), project.sinks),
    )


def _undeclared(text: str, *known: Manifest) -> set[str]:
    """Tables of the lake that a stored manifest declares, and none of the known ones."""
    stored = entries(text)
    sources = {
        name
        for name, one in stored.get("sources", {}).items()
        # The table of another system is not in the lake.
        if one.get("format") != SourceFormat.DELTA
    }
    found = {
        *(f"{Layer.BRONZE}.{name}" for name in sources),
        *(
            f"{layer}.{name}"
            for layer in (Layer.SILVER, Layer.GOLD)
            for name in stored.get(layer, ())
        ),
    }
    for manifest in known:
        for layer in (manifest.sources, manifest.silver, manifest.gold):
            found -= {str(one.table_name) for one in layer.values()}
    return found


def kept_tables(found: Deployment, *known: Manifest, since: datetime) -> dict[str, str]:
    """The tables that a deployment kept, and those that only its manifest declares.

    Args:
        found: the deployment.
        known: what is declared now.
        since: when the latter were kept.
    """
    moment = since.isoformat(timespec="seconds")
    return {**dict.fromkeys(_undeclared(found.manifest, *known), moment), **found.kept}


def read_entry(kind: type[_Entry], stored: JsonObject | None) -> _Entry | None:
    """An entry; fields that this release lacks are left out. None if it cannot be read."""
    try:
        return (
            None if stored is None else kind.model_validate_json(json.dumps(stored), extra="ignore")
        )
    except ValidationError:
        return None


def _read(
    kind: type[_Entry], stored: Mapping[str, JsonObject], instead: Mapping[str, _Entry]
) -> dict[str, _Entry]:
    read = {name: read_entry(kind, one) or instead.get(name) for name, one in stored.items()}
    return {name: one for name, one in read.items() if one is not None}
