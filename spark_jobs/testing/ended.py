"""Runs a view's case on DuckDB if that is known to give the same rows as Spark, else on Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spark_jobs.errors import LakehouseError
from spark_jobs.gold.compute.protocol import DUCKDB, SPARK
from spark_jobs.graph.duck.errors import NotTranslatedError
from spark_jobs.graph.manifest import Manifest
from spark_jobs.names import passed_keys
from spark_jobs.sections import Engine
from spark_jobs.settings import Settings
from spark_jobs.testing.case_files import Case
from spark_jobs.testing.run import CaseResult, prepared
from spark_jobs.testing.silver_results import SilverCaseResult

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Session = Callable[[], "SparkSession"]


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A case file with its result, or with the error that stopped it.

    Attributes:
        name: of the file without its ending; with the layer for a silver table.
        engine: what ran the case; None if the file cannot be run.
        because: why DuckDB did not, as text after "for"; None if it was not tried.
    """

    name: str
    result: CaseResult | SilverCaseResult | None = None
    error: LakehouseError | None = None
    engine: str | None = None
    because: str | None = None

    @property
    def passed(self) -> bool:
        return self.result is not None and self.result.passed

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object.

        Returns:
            ``case``, the result under the names of ``passed_keys``, ``engine``, ``spark_because``,
                the keys of the result's ``as_dict``, and ``error``.
        """
        found = self.result.as_dict() if self.result else {}
        error = self.error.as_dict() if self.error else None
        return {
            "case": self.name,
            **passed_keys(passed=self.passed),
            "engine": self.engine,
            "spark_because": self.because,
            **found,
            "error": error,
        }


def run_case(
    case: Case, *, manifest: Manifest, settings: Settings, session: Session, engine: Engine
) -> Ended:
    """Run a case in its own lake.

    Args:
        case: the case.
        manifest: the compiled project.
        settings: with a temporary state directory; the lakes are below it.
        session: opens a Spark session; called only if Spark runs the case.
        engine: ``SPARK`` runs everything on Spark, including incremental refreshes.
    """
    settings = settings.with_engine(engine)
    because = None
    if engine is not Engine.SPARK:
        own = settings.moved_to(settings.state / case.name)
        try:
            return _ended(case, manifest, own, None, None)
        except NotTranslatedError as reason:
            because = reason.what
    own = settings.moved_to(settings.state / f"{case.name}.{SPARK}")
    return _ended(case, manifest, own, session, because)


def _ended(
    case: Case, manifest: Manifest, settings: Settings, session: Session | None, because: str | None
) -> Ended:
    result, stopped = None, None
    try:
        with prepared(case, manifest=manifest, settings=settings, session=session) as run:
            result = run.run()
    except LakehouseError as error:
        stopped = error
    return Ended(
        name=case.name,
        result=result,
        error=stopped,
        engine=DUCKDB if session is None else SPARK,
        because=because,
    )
