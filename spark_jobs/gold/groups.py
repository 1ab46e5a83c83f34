"""Where the kept groups of a view lie, and in how many parts.

Few groups are written anew by each refresh. To many, a refresh appends what is to be added, and
who reads them adds up, until they are written anew after some refreshes: a log-structured merge
(O'Neil et al., "The Log-Structured Merge-Tree", 1996).
"""

from __future__ import annotations

from dataclasses import dataclass

from spark_jobs.gold.context import GoldContext
from spark_jobs.gold.publications import Publication
from spark_jobs.names import TableVersion
from spark_jobs.storage import log
from spark_jobs.storage.history import readable

# The key of a commit's metadata that says how often groups were appended to.
LAYERS = "layers"
# Writing fewer groups anew takes no longer than appending to them, and reading them less.
FEW_GROUPS = 20_000
# Adding up so many layers still takes less than writing the groups anew.
MOST_LAYERS = 20
# Groups are appended to while what changed is at most one part in so many of them.
APPENDED_PART = 4


@dataclass(frozen=True)
class KeptGroups:
    """A table of kept groups, as a publication knows it.

    Attributes:
        location: of the table.
        known: the version that belongs to the publication; None where it or its files are gone.
        rows: of that version; a group has one for each layer that it is in.
        layers: how often it was appended to since it was written anew; None where nobody knows.
    """

    location: str
    known: TableVersion | None = None
    rows: int = 0
    layers: int | None = 0

    @property
    def in_parts(self) -> bool:
        """Whether several rows of the table may make up a group, now or after a refresh."""
        return self.layers != 0 or self.rows > FEW_GROUPS

    def takes(self, changed: int | None) -> bool:
        """Whether a change of so many rows is appended to the version that is known."""
        if self.known is None or self.layers is None or self.layers >= MOST_LAYERS:
            return False
        if changed is None or self.rows <= max(FEW_GROUPS, APPENDED_PART * changed):
            return False
        # What an attempt appended that was never published must not be built upon.
        return log.table_version(self.location) == self.known


def kept_groups(context: GoldContext, base: Publication, *, view: str, name: str) -> KeptGroups:
    """The groups that belong to a publication of a view, by their name ``state.N``."""
    number = int(name.rpartition(".")[2])
    location = context.lake.state(view, base.watermark.fingerprint, number)
    known = base.watermark.states.get(name)
    current = log.table_version(location)
    if known is None or current is None or current.table_id != known.table_id:
        return KeptGroups(location)
    if not readable(location, known.version):
        return KeptGroups(location)
    commit = log.commit(location, known.version)
    layers = None if commit is None else (commit.metadata or {}).get(LAYERS)
    rows = log.size(location, known.version).rows or 0
    return KeptGroups(location, known, rows, layers if isinstance(layers, int) else None)
