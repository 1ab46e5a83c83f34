"""Reads a published table's log: our publications, and commits of other writers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from spark_jobs.graph.manifest import Manifest
from spark_jobs.names import TableName
from spark_jobs.planning.plan import Intruder
from spark_jobs.planning.watermark import Watermark
from spark_jobs.storage import log
from spark_jobs.storage.commits import Commit
from spark_jobs.storage.history import rows_changed
from spark_jobs.storage.lake import Lake

# A publication is nearly always among this many newest commits.
_FIRST_LOOK = 20


@dataclass(frozen=True)
class Publication:
    """A commit that published a result."""

    version: int
    at: datetime
    watermark: Watermark


def latest_publication(location: str) -> Publication | None:
    """The newest publication, or None."""
    return next(publications(location), None)


def changed_views(manifest: Manifest, root: str) -> frozenset[str]:
    """The views that were never published, or were published with another definition.

    Args:
        manifest: the project.
        root: location of the lake.
    """
    lake = Lake(root)
    found = set()
    for view in manifest.gold.values():
        published = latest_publication(lake.location(view.table_name))
        if published is None or published.watermark.fingerprint != view.fingerprint:
            found.add(view.name)
    return frozenset(found)


def publication_of(location: str, attempt_id: str) -> Publication | None:
    """The publication of an attempt, or None."""
    found = publications(location)
    return next((one for one in found if one.watermark.attempt == attempt_id), None)


def intruder(location: str, publication: Publication) -> Intruder | None:
    """The newest foreign commit that changed rows, and that no publication has corrected.

    It is after the publication, or just below: Delta lets an append pass another one, also between
    the version that a change was computed for and its commit. Compactions do not change rows. A
    newer publication is not foreign: a refresh may publish between the two reads of the log.
    """
    follows = publication.watermark.follows
    first = publication.version - 1 if follows is None else min(follows, publication.version - 1)
    commits = log.commits(location, limit=_FIRST_LOOK)
    if commits and commits[-1].version > first + 1:
        # Compactions and changed properties may hide it.
        commits = log.commits(location)
    for commit in commits:
        if commit.version <= first:
            return None
        if _publication(commit) is None and _changes_rows(location, commit.version):
            return Intruder(commit.version, commit.operation)
    return None


def newest_intruder(location: str) -> Intruder | None:
    """The same, of the newest publication."""
    latest = latest_publication(location)
    return None if latest is None else intruder(location, latest)


def rewritten(publication: Publication, table: TableName, location: str) -> bool:
    """Whether an input's published version is another commit now.

    Its files were put back to an older state, and written again.

    Args:
        publication: of the view.
        table: the input.
        location: of the input.
    """
    mark = publication.watermark
    before, at = mark.vector.get(table), mark.committed.get(table)
    if before is None or at is None:
        return False
    now = log.committed_at(location, before.version)
    return now is not None and now != at


def publications(location: str) -> Iterator[Publication]:
    """All publications, newest first; reads the whole log only if its end is not enough."""
    seen = 0
    for limit in (_FIRST_LOOK, None):
        commits = log.commits(location, limit=limit)
        yield from filter(None, map(_publication, commits[seen:]))
        seen = len(commits)
        if seen < _FIRST_LOOK:
            return


def _changes_rows(location: str, version: int) -> bool:
    return rows_changed(location, after=version - 1, upto=version)


def _publication(commit: Commit) -> Publication | None:
    watermark = Watermark.from_metadata(commit.metadata)
    return None if watermark is None else Publication(commit.version, commit.timestamp, watermark)
