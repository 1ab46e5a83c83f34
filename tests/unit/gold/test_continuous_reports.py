"""What continuous views report while the streams beside them start, and beside other refreshes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from deltalake import write_deltalake

from spark_jobs.gold.base.errors import BaseMovedError
from spark_jobs.gold.continuous.loop import ContinuousGold
from spark_jobs.gold.refresh.steps import ROUNDS
from spark_jobs.graph.manifest import Manifest
from spark_jobs.planning.decision import Full, Reason, ReasonCode
from spark_jobs.settings import load_settings
from spark_jobs.state.progress import StreamState
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import utc_now
from spark_jobs.storage import log, writer
from tests.unit.gold.test_followed import plan, versions, view
from tests.unit.gold.test_refreshes_here import PLAIN, Project, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_views_of_an_earlier_run_are_starting_while_streams_start(tmp_path: Path) -> None:
    long_ago = utc_now() - timedelta(hours=1)
    with ControlStore.open(f"sqlite:///{tmp_path}/control.db") as store:
        for query in ("gold.totals", "silver.orders"):
            store.record_heartbeat(query, at=long_ago, state=StreamState.STOPPED)
        gold = ContinuousGold(load_settings(tmp_path), store, Manifest)
        gold.report_starting()
        view, stream = store.progress()
        assert (view.query, view.state) == ("gold.totals", StreamState.STARTING)
        assert view.heartbeat_at > long_ago
        assert stream.state is StreamState.STOPPED
        gold.report()
        gold.report_starting()
        assert next(one.heartbeat_at for one in store.progress()) == view.heartbeat_at


class Beaten:
    """A refresher whose refreshes another one overtakes."""

    def __init__(self) -> None:
        self.superseded: list[str] = []

    def follow(self, name: str, *, pin: object) -> Any:
        assert pin
        more = Full(Reason(ReasonCode.INPUT_CHANGED_RULE, "more"))
        return replace(plan(1, more), attempt_id=name)

    def carry_out(self, one: Any, **_: object) -> None:
        raise BaseMovedError(one.view, "a newer refresh of it was published")

    def supersede(self, attempt_id: str) -> None:
        self.superseded.append(attempt_id)


def test_a_view_that_another_refresh_overtakes_has_not_failed(tmp_path: Path) -> None:
    followed, beaten = view(), Beaten()
    followed.state, newest = StreamState.RUNNING, versions(1, 3)
    with ControlStore.open(f"sqlite:///{tmp_path}/control.db") as store:
        gold = ContinuousGold(load_settings(tmp_path), store, Manifest)

        def refresh() -> None:
            gold._refresh(beaten, followed, {}, newest=newest)  # type: ignore[arg-type]

        for _ in range(ROUNDS - 1):
            refresh()
            assert (followed.state, followed.error) == (StreamState.RUNNING, None)
            # It is planned again in the next pass.
            assert followed.due(newest, now=gold.clock())
        assert beaten.superseded == ["totals"] * (ROUNDS - 1)
        # Again and again: somebody should know.
        with pytest.raises(BaseMovedError):
            refresh()


def test_foreign_rows_below_a_publication_are_corrected_in_the_next_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's append passes what another writer appended while it was prepared."""
    project, change = Project(tmp_path, PLAIN, a=table(k=[1], x=[10])), writer.change
    file = tmp_path / "sql" / "gold" / "v.sql"
    file.write_text(file.read_text().replace("refresh: bulk", "refresh: continuous"))

    def overtaken(rows: Any, location: str, *, seen: object, **options: Any) -> None:
        assert seen
        write_deltalake(location, table(k=[9], x=[9]), mode="append")
        change(rows, location, seen=log.table_version(location), **options)

    with project.opened() as refresher:
        manifest, session = refresher.context.manifest, cast("SparkSession", object())
        gold = ContinuousGold(refresher.context.settings, refresher.context.store, lambda: manifest)
        gold._refresher(manifest, session).context.in_process = True
        assert gold.follow_once(session)
        project.append("a", k=[2], x=[20])
        with monkeypatch.context() as crowded:
            crowded.setattr(writer, "change", overtaken)
            assert gold.follow_once(session)
        assert project.rows() == [(1, 10), (2, 20), (9, 9)]
        assert gold.follow_once(session)
        assert project.rows() == [(1, 10), (2, 20)]
        assert gold.follow_once(session) == 0
