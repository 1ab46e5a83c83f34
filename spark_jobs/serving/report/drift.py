"""Schema drift for status and page: differences from declarations, and their effects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from spark_jobs.state.drift import drift_words

if TYPE_CHECKING:
    from spark_jobs.serving.project import OpenProject
    from spark_jobs.state.drift import Drift


@dataclass(frozen=True)
class DriftTelling:
    """A difference that still exists, and its effect.

    Attributes:
        policy: the source's ``on_drift``; "" if not declared.
        holds: silver tables that it blocks.
        to_review: whether a person must look at it.
    """

    drift: Drift
    policy: str
    holds: tuple[str, ...]
    to_review: bool

    @property
    def standing(self) -> str:
        """Its state in one word."""
        if self.drift.accepted_by is not None:
            return "accepted"
        return "holds" if self.holds else "open" if self.to_review else "recorded"

    @property
    def words(self) -> str:
        """The difference, its first record, and blocked tables, on one line."""
        what = f"{drift_words(self.drift)} since {self.drift.position}"
        return f"{what}; {', '.join(self.holds)} wait" if self.holds else what

    def as_dict(self) -> dict[str, Any]:
        """The keys of ``Drift.as_dict``, and ``policy``, ``holds`` and ``standing``."""
        own = {"policy": self.policy, "holds": self.holds, "standing": self.standing}
        return {**self.drift.as_dict(), **own}


def drift_tellings(project: OpenProject) -> list[DriftTelling]:
    """All differences from the current declarations, including accepted ones."""
    from spark_jobs.silver.check.drift import blocking_drifts, still_differs, to_review

    manifest, found = project.manifest, []
    for one in project.store.drifts():
        source = manifest.sources.get(one.source)
        if source is None or not still_differs(one, source):
            continue
        entries = (entry for entry in manifest.silver.values() if entry.source == source.name)
        holds = tuple(
            str(entry.table_name) for entry in entries if blocking_drifts([one], source, entry)
        )
        policy = "" if source.on_drift is None else source.on_drift.value
        found.append(DriftTelling(one, policy, holds, bool(to_review([one], source))))
    return found


def drift_table(found: Sequence[DriftTelling]) -> Table:
    """A row per difference."""
    table = Table(title="Records that are not as declared", title_justify="left")
    table.add_column("source", no_wrap=True)
    for name in ("difference", "first record", "standing", "waits"):
        table.add_column(name, overflow="fold")
    for one in found:
        style = {"holds": "red", "open": "yellow"}.get(one.standing, "dim")
        table.add_row(
            one.drift.source,
            Text(drift_words(one.drift)),
            Text(one.drift.position),
            Text(one.standing, style=style),
            ", ".join(one.holds),
        )
    return table
