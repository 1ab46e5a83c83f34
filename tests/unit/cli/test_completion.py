from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from spark_jobs.settings import REPOSITORY, load_settings
from tests.shipped import shipped_project


@pytest.fixture
def project(tmp_path: Path) -> Path:
    settings = load_settings(REPOSITORY, state_dir=tmp_path)
    shipped_project().write(settings.manifest_file)
    return tmp_path


def proposed(state: Path, *words: str) -> set[str]:
    """What the program proposes for the last of these words."""
    environment = {
        **os.environ,
        "_TIDEMARK_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(["tidemark", *words]),
        "COMP_CWORD": str(len(words)),
        "TIDEMARK_STATE_DIR": str(state),
        "TIDEMARK_PROJECT": str(REPOSITORY),
    }
    program = str(Path(sys.executable).with_name("tidemark"))
    found = subprocess.run([program], env=environment, capture_output=True, text=True, check=False)
    return set(found.stdout.split())


def test_verbs_views_and_selections_are_proposed(project: Path) -> None:
    assert "explain" in proposed(project, "exp")
    assert proposed(project, "explain", "user_rev") == {"user_revenue"}
    assert proposed(project, "refresh", "+user_rev") == {"+user_revenue"}
    assert proposed(project, "test", "tag:sec") == {"tag:security"}
    assert proposed(project, "test", "silver.title") == {"silver.titles"}


def test_a_project_that_was_never_compiled_proposes_nothing(tmp_path: Path) -> None:
    assert proposed(tmp_path, "explain", "user") == set()


def test_a_command_starts_without_importing_the_others() -> None:
    program = (
        "import sys; from spark_jobs.cli.commands import Commands; Commands()['validate'];"
        "print([one for one in sys.modules if one in {'sqlalchemy', 'spark_jobs.cli.status'}])"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"
