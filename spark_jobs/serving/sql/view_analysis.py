"""Asks Spark's analyzer about gold views: their SQL over no rows, so nothing is computed.

The compiler reports what it is certain of. Spark knows the rest, for instance the types that each
of its functions takes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final

from spark_jobs.errors import LakehouseError, Location
from spark_jobs.graph.manifest import GoldEntry, Manifest, SourceEntry
from spark_jobs.graph.no_rows import over_no_rows
from spark_jobs.graph.typed_source import typed_columns
from spark_jobs.serving.sql.session import declared_tables
from spark_jobs.serving.sql.spark_words import query_error, said
from spark_jobs.settings import Settings
from spark_jobs.storage.rights import usual_rights
from spark_jobs.storage.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK: Final = version("pyspark")
# Fingerprints of the views that Spark accepted, in the state directory.
ACCEPTED: Final = "analyzed.json"


class SparkRefusesViewError(LakehouseError):
    """Spark's analyzer refuses the SQL of a view."""

    condition = "SPARK_REFUSES_VIEW"
    view: str
    reason: str
    hint: str
    location: Location | None
    primary = "gold.{view}: Spark refuses the SQL: {reason}"


def analyzed(settings: Settings, manifest: Manifest) -> list[SparkRefusesViewError]:
    """The views that Spark refuses, asked in a session of its own; see ``refused_views``.

    Raises:
        LakehouseError: a session cannot be opened.
    """
    with ExitStack() as opened:

        def session() -> SparkSession:
            spark = open_session(settings)
            # A server drops idle sessions only after an hour.
            opened.callback(spark.stop)
            return spark

        return refused_views(manifest, session, state=settings.state)


def refused_views(
    manifest: Manifest, session: Callable[[], SparkSession], *, state: Path
) -> list[SparkRefusesViewError]:
    """The views whose SQL Spark refuses.

    A view that Spark accepted is not asked about again until its SQL, a type of its inputs or the
    version of Spark changes.

    Args:
        manifest: the compiled project.
        session: opens the session; it is not called if all views are known.
        state: the state directory.

    Returns:
        an error for each, in the order of the names.
    """
    accepted = _read(state / ACCEPTED)
    columns = {
        str(name): typed_columns(entry)
        if isinstance(entry, SourceEntry)
        else {column.name: column.type for column in entry.columns}
        for name, entry in declared_tables(manifest).items()
    }
    entries = dict(sorted(manifest.gold.items()))
    texts = {view: over_no_rows(entry.query, columns) for view, entry in entries.items()}
    prints = {
        view: hashlib.sha256(f"{SPARK}\n{text}".encode()).hexdigest()
        for view, text in texts.items()
    }
    unknown = [view for view in texts if prints[view] not in accepted]
    if not unknown:
        return []
    spark = session()
    asked = {view: _refusal(spark, entries[view], texts[view]) for view in unknown}
    if state.is_dir():
        _write(state / ACCEPTED, (prints[view] for view in texts if asked.get(view) is None))
    return [refusal for refusal in asked.values() if refusal is not None]


def _refusal(spark: SparkSession, entry: GoldEntry, text: str) -> SparkRefusesViewError | None:
    from pyspark.errors import AnalysisException, PySparkException

    try:
        _ = spark.sql(text).schema
    except PySparkException as error:
        # Some refusals have no condition; a server that went away has none, either.
        if not isinstance(error, AnalysisException) and not said(str(error)).condition:
            raise
        found = query_error([str(error)])
        return SparkRefusesViewError(
            entry.name,
            found.primary.removeprefix("the query failed: "),
            found.hint or "",
            location=Location(entry.file, 1, 1),
        )
    return None


def _read(file: Path) -> frozenset[str]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return frozenset()
    return frozenset(found) if isinstance(found, list) else frozenset()


def _write(file: Path, prints: Iterable[str]) -> None:
    with usual_rights():
        fresh = file.with_suffix(".new")
        fresh.write_text(json.dumps(sorted(prints)), encoding="utf-8")
        fresh.replace(file)
