"""Asks Spark's analyzer about gold views: their SQL over no rows, so nothing is computed.

The compiler reports what it is certain of. Spark knows the rest, for instance the types that each
of its functions takes. A view that Spark accepted is not asked about again until its SQL, a type of
its inputs or the version of Spark changes.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from enum import Enum, auto
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, assert_never

from spark_jobs.errors import LakehouseError, Location, counted
from spark_jobs.graph.manifest import GoldEntry, Manifest, SilverEntry, SourceEntry
from spark_jobs.graph.no_rows import ViewsOverNoRows
from spark_jobs.serving.sql.spark_words import query_error, said
from spark_jobs.settings import Settings
from spark_jobs.storage.rights import usual_rights
from spark_jobs.storage.session import open_session, served_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK: Final = version("pyspark")
# Fingerprints of the views that Spark accepted, in the state directory; the newest first.
ACCEPTED: Final = "analyzed.json"
# That many are kept, so that another branch or an undone edit needs no question.
KEPT: Final = 5_000


class Ask(Enum):
    """Whether Spark is asked about views that it has not accepted before."""

    # If a Connect server is named and answers at once.
    IF_SERVED = auto()
    # It has to be; a session is started if no server is named.
    ALWAYS = auto()
    NEVER = auto()


class SparkRefusesViewError(LakehouseError):
    """Spark's analyzer refuses the SQL of a view."""

    condition = "SPARK_REFUSES_VIEW"
    view: str
    reason: str
    hint: str
    location: Location | None
    primary = "gold.{view}: Spark refuses the SQL: {reason}"


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """What Spark said about some views.

    Attributes:
        ask: whether it was to be asked.
        refused: an error for each view that it refuses, in the order of the names.
        new: number of views that it was asked about now.
        cached: number of views that it accepted before.
        left: number of views that it was not asked about.
        failure: why it could not be asked; None if it could, or if no server is named.
    """

    ask: Ask
    refused: tuple[SparkRefusesViewError, ...] = ()
    new: int = 0
    cached: int = 0
    left: int = 0
    failure: LakehouseError | None = None

    @property
    def problems(self) -> list[LakehouseError]:
        """What Spark refuses; and why it could not be asked, if it had to be."""
        if self.failure is not None and self.ask is Ask.ALWAYS:
            return [*self.refused, self.failure]
        return [*self.refused]

    @property
    def summary(self) -> str:
        """The number of views that Spark analyzed, as a sentence; empty if there are none.

        >>> Analysis(ask=Ask.ALWAYS, new=1, cached=2).summary
        'Spark analyzed 3 views: 1 new, 2 cached.'
        """
        if not self.new + self.cached:
            return ""
        views = counted(self.new + self.cached, "view")
        return f"Spark analyzed {views}: {self.new} new, {self.cached} cached."

    @property
    def note(self) -> str | None:
        """That Spark was not asked, why, and how to ask it; None if it was, or must not be.

        >>> print(Analysis(ask=Ask.ALWAYS, left=2).note)
        Spark was not asked about 2 views; `--no-spark` does without.
        """
        if not self.left:
            return None
        told = f"Spark was not asked about {counted(self.left, 'view')}"
        match self.ask:
            case Ask.IF_SERVED:
                why = self.failure.primary if self.failure else "no Spark Connect server runs"
                return f"{told}: {why}; `tidemark validate --spark` asks it."
            case Ask.ALWAYS:
                return f"{told}; `--no-spark` does without."
            case Ask.NEVER:
                return None
            case _:
                assert_never(self.ask)

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object."""
        return {"new": self.new, "cached": self.cached, "left": self.left, "note": self.note}


def analyzed(
    settings: Settings,
    manifest: Manifest,
    ask: Ask,
    *,
    opened: ExitStack,
    views: Collection[str] | None = None,
) -> Analysis:
    """Ask Spark about views, in a session that ``open_session`` would open.

    Args:
        settings: of the project.
        manifest: the compiled project.
        ask: whether to ask about views that are not known.
        opened: stops the session at its end.
        views: the names of the views; None: all.
    """

    def session() -> SparkSession | None:
        match ask:
            case Ask.NEVER:
                return None
            case Ask.IF_SERVED:
                spark = served_session(settings)
            case Ask.ALWAYS:
                spark = open_session(settings)
            case _:
                assert_never(ask)
        if spark is not None:
            # A server drops idle sessions only after an hour.
            opened.callback(spark.stop)
        return spark

    return analysis(manifest, session, ask=ask, state=settings.state, views=views)


def analysis(
    manifest: Manifest,
    session: Callable[[], SparkSession | None],
    *,
    ask: Ask,
    state: Path,
    views: Collection[str] | None = None,
) -> Analysis:
    """Ask Spark about views that it has not accepted before.

    Args:
        manifest: the compiled project.
        session: opens the session, or returns None if Spark is not to be asked; it is not called
            if all views are known.
        ask: whether Spark is to be asked.
        state: the state directory.
        views: the names of the views; None: all.
    """
    wanted = manifest.gold.keys() if views is None else views
    over = ViewsOverNoRows(manifest)
    prints = {
        view: hashlib.sha256(f"{SPARK}\n{over.digest(view)}".encode()).hexdigest()
        for view in over.views()
        if view in wanted
    }
    accepted = _read(state / ACCEPTED)
    before = {*accepted}
    unknown = [view for view in prints if prints[view] not in before]
    cached = len(prints) - len(unknown)
    if not unknown:
        return Analysis(ask=ask, cached=cached)
    try:
        spark = session()
        if spark is None:
            return Analysis(ask=ask, cached=cached, left=len(unknown))
        asked = {view: _refusal(spark, manifest.gold[view], over.texts(view)) for view in unknown}
    except LakehouseError as error:
        return Analysis(ask=ask, cached=cached, left=len(unknown), failure=error)
    fresh = [prints[view] for view in unknown if asked[view] is None]
    if fresh:
        _write(state / ACCEPTED, [*fresh, *accepted])
    refused = tuple(one for one in asked.values() if one is not None)
    return Analysis(ask=ask, refused=refused, new=len(asked), cached=cached)


def sound_views(manifest: Manifest, problems: Iterable[LakehouseError]) -> frozenset[str]:
    """The views without a problem in their file or in that of a table above them.

    Of the others Spark would say the same again, in other words.
    """
    wrong = {one.location.file for one in problems if one.location is not None}
    entries: list[SourceEntry | SilverEntry] = [*manifest.sources.values()]
    entries += manifest.silver.values()
    sound = {str(one.table_name) for one in entries if one.file not in wrong}
    for tier in manifest.gold_by_tier():
        views = [one for one in tier if one.file not in wrong and sound.issuperset(one.inputs)]
        sound.update(str(one.table_name) for one in views)
    return frozenset(one.name for one in manifest.gold.values() if str(one.table_name) in sound)


def _refusal(
    spark: SparkSession, entry: GoldEntry, texts: Sequence[str]
) -> SparkRefusesViewError | None:
    """Why Spark refuses a view; None if it accepts it.

    Raises:
        QueryRejectedError: Spark gives no answer, for instance because its server went away.
    """
    from pyspark.errors import AnalysisException, PySparkException

    try:
        for text in texts:
            _ = spark.sql(text).schema
    except PySparkException as error:
        found = query_error([str(error)])
        # Some refusals have no condition; a server that went away has none, either.
        if not isinstance(error, AnalysisException) and not said(str(error)).condition:
            raise found from error
        return SparkRefusesViewError(
            entry.name,
            found.primary.removeprefix("the query failed: "),
            found.hint or "",
            location=Location(entry.file, 1, 1),
        )
    return None


def _read(file: Path) -> list[str]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return [*map(str, found)] if isinstance(found, list) else []


def _write(file: Path, prints: Sequence[str]) -> None:
    """Keep the fingerprints, if this account has a state directory that it may write."""
    fresh = file.with_suffix(f".{os.getpid()}")
    with suppress(OSError), usual_rights():
        fresh.write_text(json.dumps(prints[:KEPT]), encoding="utf-8")
        fresh.replace(file)
