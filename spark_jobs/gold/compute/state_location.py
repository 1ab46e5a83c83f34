"""Where the aggregate state of a view lie, and in how many parts.

Few groups are rewritten by each refresh. To many, a refresh appends what is to be added, and
who reads them adds up, until they are rewritten after some refreshes: a log-structured merge
(O'Neil et al., "The Log-Structured Merge-Tree", 1996).
"""

from __future__ import annotations

from dataclasses import dataclass

from spark_jobs.gold.context import GoldContext
from spark_jobs.gold.publications import Publication
from spark_jobs.names import TableVersion
from spark_jobs.storage import log, policy
from spark_jobs.storage.history import readable

# The key of a commit's metadata that says how often groups were appended to.
LAYERS = "layers"


@dataclass(frozen=True)
class AggregateState:
    """A table of aggregate state, as a publication knows it.

    Attributes:
        location: of the table.
        known: the version that belongs to the publication; None where it or its files are gone.
        rows: of that version; a group has one for each layer that it is in.
        layers: how often it was appended to since it was rewritten; None where nobody knows.
    """

    location: str
    known: TableVersion | None = None
    rows: int = 0
    layers: int | None = 0

    @property
    def in_parts(self) -> bool:
        """Whether several rows of the table may make up a group, now or after a refresh."""
        return self.layers != 0 or not policy.STATE.fits(rows=self.rows)

    def takes(self, changed: int | None) -> bool:
        """Whether a change of so many rows is appended to the version that is known."""
        if self.known is None:
            return False
        if not policy.state_is_appended(rows=self.rows, layers=self.layers, changed=changed):
            return False
        # What an attempt appended that was never published must not be built upon.
        return log.table_version(self.location) == self.known


def aggregate_state(
    context: GoldContext, base: Publication, *, view: str, name: str
) -> AggregateState:
    """The groups that belong to a publication of a view, by their name ``state.N``."""
    number = int(name.rpartition(".")[2])
    location = context.lake.state(view, base.watermark.fingerprint, number)
    known = base.watermark.states.get(name)
    current = log.table_version(location)
    if known is None or current is None or current.table_id != known.table_id:
        return AggregateState(location)
    if not readable(location, known.version):
        return AggregateState(location)
    commit = log.commit(location, known.version)
    layers = None if commit is None else (commit.metadata or {}).get(LAYERS)
    rows = log.size(location, known.version).rows or 0
    return AggregateState(location, known, rows, layers if isinstance(layers, int) else None)
