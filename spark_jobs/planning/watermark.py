"""The watermark: metadata of a commit that publishes a result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from spark_jobs.graph.manifest import Parts
from spark_jobs.names import TableName, TableVersion, current_strategy
from spark_jobs.planning.errors import WatermarkNewerError
from spark_jobs.planning.vector import VersionVector

FORMAT = 1
# Distinguishes our commits from others, whose metadata may be JSON too.
MARK = "tidemark"


@dataclass(frozen=True, kw_only=True)
class Watermark:
    """The metadata of one publication.

    Attributes:
        sequence: version of the Delta transaction; grows within an epoch.
        rule: the decision, or the name of the maintenance strategy of an incremental refresh.
        clock: the value of ``current_timestamp``.
        changed: whether the publication changed any row.
        states: versions of the view's aggregate state, by name.
        parts: parts of the definition; None if they do not stand alone.
        verdict: summary of the gate's verdict.
        announced: whether the publishing Airflow task emits the asset event.
        committed: when the versions of ``vector`` were committed, where the logs say so. If a table
            was put back to an older state and written again, a version has another time.
        follows: the published table's version that the publication was made for. Commits between it
            and the publication are foreign. None: it replaced all rows, or an older
            release wrote it.
    """

    view: str
    sequence: int
    epoch: int
    fingerprint: str
    rule: str
    vector: VersionVector
    tick: str
    attempt: str
    clock: datetime
    changed: bool = True
    verdict: Mapping[str, Any] = field(default_factory=dict)
    states: Mapping[str, TableVersion] = field(default_factory=dict)
    parts: Parts | None = None
    announced: bool = False
    committed: Mapping[TableName, datetime] = field(default_factory=dict)
    follows: int | None = None

    @property
    def place(self) -> tuple[int, int]:
        """Epoch and sequence, as those of an attempt."""
        return self.epoch, self.sequence

    @property
    def app_id(self) -> str:
        """The Delta app id."""
        return transaction_app_id(self.view, self.epoch)

    def as_metadata(self) -> dict[str, Any]:
        """As stored in the commit: the format under ``MARK``, and the attributes by name.

        The clock is in ISO 8601. ``announced`` is left out if it is False.
        """
        return {
            MARK: FORMAT,
            "view": self.view,
            "sequence": self.sequence,
            "epoch": self.epoch,
            "fingerprint": self.fingerprint,
            "rule": self.rule,
            "vector": self.vector.as_dict(),
            "tick": self.tick,
            "attempt": self.attempt,
            "clock": self.clock.isoformat(),
            "changed": self.changed,
            "verdict": dict(self.verdict),
            "states": states_as_dict(self.states),
            "parts": None if self.parts is None else self.parts.model_dump(),
            **({"announced": True} if self.announced else {}),
            "committed": times_as_dict(self.committed),
            "follows": self.follows,
        }

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Any] | None) -> Self | None:
        """Decode a commit's metadata, as from ``as_metadata``; None if the commit is not ours.

        Raises:
            WatermarkNewerError: a newer release wrote it.
        """
        found = None if metadata is None else metadata.get(MARK)
        if metadata is None or not isinstance(found, int) or found < FORMAT:
            return None
        if found > FORMAT:
            raise WatermarkNewerError(str(metadata.get("view")), found=found, known=FORMAT)
        parts = metadata.get("parts")
        return cls(
            view=metadata["view"],
            sequence=metadata["sequence"],
            epoch=metadata["epoch"],
            fingerprint=metadata["fingerprint"],
            rule=current_strategy(metadata["rule"]),
            vector=VersionVector.from_dict(metadata["vector"]),
            tick=metadata["tick"],
            attempt=metadata["attempt"],
            clock=datetime.fromisoformat(metadata["clock"]),
            changed=metadata["changed"],
            verdict=metadata["verdict"],
            states=states_from_dict(metadata.get("states") or {}),
            parts=None if parts is None else Parts.model_validate(parts),
            announced=metadata.get("announced", False),
            committed=times_from_dict(metadata.get("committed") or {}),
            follows=metadata.get("follows"),
        )


def states_as_dict(states: Mapping[str, TableVersion]) -> dict[str, Any]:
    """As stored in commits: ``id`` and ``version`` by the state's name."""
    return {name: {"id": one.table_id, "version": one.version} for name, one in states.items()}


def states_from_dict(value: Mapping[str, Any]) -> dict[str, TableVersion]:
    """Decode the result of ``states_as_dict``."""
    return {name: TableVersion(str(one["id"]), int(one["version"])) for name, one in value.items()}


def times_as_dict(times: Mapping[TableName, datetime]) -> dict[str, str]:
    """As stored in commits: the time of each table in ISO 8601."""
    return {str(table): at.isoformat() for table, at in times.items()}


def times_from_dict(value: Mapping[str, str]) -> dict[TableName, datetime]:
    """Decode the result of ``times_as_dict``."""
    return {TableName.parse(name): datetime.fromisoformat(at) for name, at in value.items()}


def transaction_app_id(view: str, epoch: int) -> str:
    """The Delta app id of a view's publications in an epoch.

    The epoch is part of it because Delta skips numbers that it has seen, even after a restore.

    >>> transaction_app_id("daily", 2)
    'gold/daily/2'
    """
    return f"gold/{view}/{epoch}"
