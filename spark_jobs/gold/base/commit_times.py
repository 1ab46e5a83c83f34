"""When the input versions of a result were committed.

If a table is put back to an older state and written again, a version has another time.
"""

from __future__ import annotations

from datetime import datetime

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.base.publications import publications
from spark_jobs.names import TableName
from spark_jobs.planning.decision import Promotion, Rollback
from spark_jobs.planning.vector import VersionVector
from spark_jobs.planning.watermark import times_from_dict
from spark_jobs.planning.work import WorkItem
from spark_jobs.storage import log
from spark_jobs.storage.commits import commit


def commit_times(context: GoldContext, vector: VersionVector) -> dict[TableName, datetime]:
    """When the versions were committed, where the logs say so."""
    found = {
        table: log.committed_at(context.locations.of(table), version.version)
        for table, version in vector
    }
    return {table: at for table, at in found.items() if at is not None}


def times_of(context: GoldContext, work: WorkItem) -> dict[TableName, datetime]:
    """When the input versions of a work item were committed, as its rows were computed.

    The rows of a rollback or a promotion were computed earlier, and a version may have been
    rewritten since.
    """
    match work.decision:
        case Rollback(version=version):
            found = publications(context.published_at(work.view))
            known = (one.watermark.committed for one in found if one.version == version)
            return dict(next(known, {}))
        case Promotion(environment=name, version=version):
            built = commit(context.lake.environment(name, work.view), version)
            said = (built and built.metadata) or {}
            inputs = VersionVector.from_dict(said.get("vector") or {})
            times = times_from_dict(said.get("committed") or {})
            read = {table for table, version in work.vector if inputs.get(table) == version}
            return commit_times(context, work.vector) | {
                table: at for table, at in times.items() if table in read
            }
    return commit_times(context, work.vector)
