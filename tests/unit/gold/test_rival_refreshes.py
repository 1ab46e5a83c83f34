"""Whole refreshes in this process, while something else happens between two of their steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.gold.refresh import publishing
from spark_jobs.planning.request import Why
from spark_jobs.state.attempts import AttemptStatus
from spark_jobs.storage.errors import LogUnreadableError
from tests.unit.gold.test_refreshes_here import PLAIN, Project, table

OTHER = "SELECT a.k, a.x * 2 AS x FROM bronze.a AS a"
WHY = Why("a test wants it so", None)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path, PLAIN, a=table(k=[1], x=[10]))
    project.refresh()
    project.append("a", k=[2], x=[20])
    return project


def test_what_fails_after_the_commit_does_not_hide_the_publication(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise LogUnreadableError("/lake", "the disk is away")

    with monkeypatch.context() as away:
        away.setattr(publishing, "set_clustering", fails)
        with pytest.raises(LogUnreadableError):
            project.refresh()
    project.refresh()
    with project.opened() as refresher:
        found = refresher.context.store.attempts("v", statuses=(AttemptStatus.PUBLISHED,))
        assert [one.published_version for one in found] == [1, 0]
        assert found[0].error is None
