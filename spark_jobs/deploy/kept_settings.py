"""The settings of a deployment: by key; possible secrets as digests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from spark_jobs.deploy.change import Action, Category, Change, Kind, Work
from spark_jobs.settings import Settings

# Paths of one machine, and settings that do not belong to the project.
_LOCAL = {
    "project_dir",
    "state_dir",
    "spark_jars",
    "kafka_jars",
    "cassandra_jars",
    "s3_jars",
    "s3proxy_jars",
}
# Keys that may contain a password, a token or an address with one.
_SECRET = ("url", "dsn", "database", "control_db", "password", "secret", "token", "headers", "conf")
_DIGITS = 12


def kept_settings(settings: Settings) -> dict[str, str]:
    """All settings as text, by dotted key.

    Defaults are left out, so that new defaults of a release are not changes.
    """
    values = settings.model_dump(mode="json", exclude_defaults=True, exclude=_LOCAL)
    return dict(sorted(_flat("", values)))


def setting_changes(before: Mapping[str, str], after: Mapping[str, str]) -> list[Change]:
    """The settings that differ; ``stack up`` restarts the parts that read them.

    Args:
        before: the running settings as text, by dotted key.
        after: the project's, likewise.
    """
    found = []
    for key in sorted(before.keys() | after.keys()):
        was, now = before.get(key), after.get(key)
        if was != now:
            found.append(
                Change(
                    kind=Kind.SETTING,
                    name=key,
                    action=Action.of(was is not None, now is not None),
                    category=Category.METADATA,
                    work=(Work.RESTART_PARTS,),
                    details=(f"{was or 'unset'} → {now or 'unset'}",),
                )
            )
    return found


def _flat(prefix: str, value: Any) -> Iterator[tuple[str, str]]:
    last = prefix.rpartition(".")[2]
    if isinstance(value, dict) and not last.endswith("conf"):
        for key, inner in value.items():
            yield from _flat(f"{prefix}.{key}".strip("."), inner)
        return
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    yield prefix, _digest(text) if _may_be_secret(last, text) else text


def _may_be_secret(key: str, text: str) -> bool:
    return bool(text) and (any(word in key for word in _SECRET) or "://" in text or "=" in text)


def _digest(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]}"
