"""Where a view's aggregate state is stored, and in how many parts.

A refresh rewrites a small table. To a large one it appends its changes, and readers sum the rows of
each group until some later refresh rewrites the table: a log-structured merge tree (O'Neil et al.,
"The Log-Structured Merge-Tree", 1996).
"""

from __future__ import annotations

from dataclasses import dataclass

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.base.publications import Publication
from spark_jobs.names import TableVersion
from spark_jobs.storage import log, policy
from spark_jobs.storage.commits import commit
from spark_jobs.storage.history import readable

# Key in a commit's metadata: how many appends there were since the last rewrite.
LAYERS = "layers"


@dataclass(frozen=True)
class AggregateState:
    """A table of aggregate state, as a publication knows it.

    Attributes:
        location: of the Delta table.
        known: the version that belongs to the publication; None if it was deleted or never written.
        rows: rows of that version; a group has one row in each layer that changed it.
        layers: appends since the last rewrite; None if unknown.
    """

    location: str
    known: TableVersion | None = None
    rows: int = 0
    layers: int | None = 0

    @property
    def in_parts(self) -> bool:
        """Whether a group may have several rows, now or after the refresh."""
        return self.layers != 0 or not policy.STATE.fits(rows=self.rows)

    def takes(self, changed: int | None) -> bool:
        """Whether a change of ``changed`` input rows is appended to the known version."""
        if self.known is None:
            return False
        if not policy.state_is_appended(rows=self.rows, layers=self.layers, changed=changed):
            return False
        # Do not append to a version that an unpublished attempt wrote.
        return log.table_version(self.location) == self.known


def aggregate_state(
    context: GoldContext, base: Publication, *, view: str, name: str
) -> AggregateState:
    """The aggregate state ``state.N`` that belongs to a publication of a view."""
    number = int(name.rpartition(".")[2])
    location = context.lake.state(view, base.watermark.fingerprint, number)
    known = base.watermark.states.get(name)
    current = log.table_version(location)
    if known is None or current is None or current.table_id != known.table_id:
        return AggregateState(location)
    if not readable(location, known.version):
        return AggregateState(location)
    found = commit(location, known.version)
    layers = None if found is None else (found.metadata or {}).get(LAYERS)
    rows = log.size(location, known.version).rows or 0
    return AggregateState(location, known, rows, layers if isinstance(layers, int) else None)
